-- Leaves what a gateway's limits are, and tells what was there before.
--
-- KEYS[1]  a hash, of all gateways
-- ARGV[1]  how long it lasts, in milliseconds
-- ARGV     behind it, for each limit: its field, and the value
--
-- Returns what each field was, or the first error. Nothing is written where
-- it could not be given a lifetime.
local key, lifetime = KEYS[1], ARGV[1]
local was, failed = {}, nil

local function try(command, ...)
	local reply = redis.pcall(command, ...)
	if type(reply) == 'table' and reply.err then
		failed = failed or { err = command .. ': ' .. reply.err }
	end
	return reply
end

for i = 2, #ARGV, 2 do
	was[#was + 1] = failed or try('HGET', key, ARGV[i])
end
if not failed then
	try('PEXPIRE', key, lifetime)
end
if not failed then
	for i = 2, #ARGV, 2 do
		try('HSET', key, ARGV[i], ARGV[i + 1])
	end
	try('PEXPIRE', key, lifetime)
end
return failed or was
