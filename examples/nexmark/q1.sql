-- Gives every bid's price in euros instead of dollars.
SELECT auction, bidder, 0.908 * price AS price, ts FROM bids
