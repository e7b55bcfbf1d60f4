-- Shows the bids on a fixed selection of auctions.
SELECT auction, price, ts FROM bids WHERE auction % 123 = 0
