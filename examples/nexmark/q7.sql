-- Which bid was the highest of its ten seconds?
WITH highest AS (
  SELECT max(price) AS price, window.end AS endtime
  FROM bids GROUP BY window(ts, '10 seconds')
)
SELECT b.auction, b.price, b.bidder, b.ts
FROM bids b JOIN highest h
  ON b.price = h.price AND b.ts >= h.endtime - INTERVAL 10 SECONDS AND b.ts < h.endtime
