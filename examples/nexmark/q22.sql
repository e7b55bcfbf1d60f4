-- Takes the directories out of every bid's URL.
SELECT auction, bidder, price, channel, ts, split_part(url, '/', 4) AS dir1,
       split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
FROM bids
