-- The one place where time comes in: microseconds since 1970 by the
-- server's clock. Tests paste another now_us here.
local function now_us()
	local t = redis.call('TIME')
	return t[1] * 1000000 + t[2]
end
