-- Passes every bid on as it is: what the system costs when the query does nothing.
SELECT auction, bidder, price, channel, url, ts FROM bids
