-- Which auctions had the most bids in the last ten seconds, asked every two seconds?
WITH counts AS (
  SELECT auction, count(*) AS num, window.start AS starttime, window.end AS endtime
  FROM bids GROUP BY auction, window(ts, '10 seconds', '2 seconds')
), most AS (
  -- The counts of one window all carry its end, so a window of one slide holds just them.
  SELECT max(num) AS num, window.start AS endtime
  FROM counts GROUP BY window(endtime, '2 seconds')
)
SELECT counts.auction, counts.num, counts.starttime, counts.endtime
FROM counts JOIN most ON counts.endtime = most.endtime AND counts.num >= most.num
