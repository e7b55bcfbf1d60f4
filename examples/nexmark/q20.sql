-- Gives the bids on auctions of category 10 what is known about the auction, for a day.
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.ts AS bid_at, a.item_name,
       a.description, a.initial_bid, a.reserve, a.ts AS opened_at, a.expires, a.seller, a.category
FROM bids b JOIN auctions a
  ON b.auction = a.id AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 DAY
WHERE a.category = 10
