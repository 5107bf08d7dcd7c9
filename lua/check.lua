-- Decides a list of requests, each all or nothing.
--
-- KEYS     the keys of all checks, in order
-- ARGV[1]  for each request: a byte, its number of checks, then a record
--          (see laws.lua) for each
--
-- Returns a flat list: now (a double as 8 bytes), then for each request
-- either an error (an outage for it) or for each check four doubles as 32
-- bytes: wait, remaining, next, full.
-- wait: 0 allowed, > 0 refused for so long, -1 refused for ever, -2 the
-- key holds something else.
--@include now.lua
--@include laws.lua
local FIGURES = '<dddd'
local NOTHING = pack_bytes(FIGURES, NO_STATE, 0, 0, 0)
local OBSERVE = 16
local WAIT = 8 -- where it stands among what decide_many keeps of a check

local records = ARGV[1]
local reply, filled = { pack_bytes('<d', now) }, 1

local function evaluate(key, law, kind, p, q, r, s)
	local value = try('GET', key)
	if value and #value ~= law.size then
		return foreign(value)
	end
	return law.evaluate(value, kind, p, q, r, s)
end

-- A key found without a TTL would never go (a stranger's PERSIST).
local function give_ttl(key, end_ms)
	if redis.call('PTTL', key) == -1 then
		redis.call('PEXPIRE', key, end_ms + 1 - now_ms)
	end
end

-- Takes the cost if `take`, and tells the figures.
local function conclude(key, law, take, p, q, r, s, wait, t, a, b, c, d)
	filled = filled + 1
	if wait == NO_STATE then
		reply[filled] = NOTHING
		return
	end
	take = take and wait == 0 and r > 0
	if take and law == bucket then
		b = b - r * q
	elseif take then
		b = b + r
	end
	local remaining, next, full, end_ms = law.tell(p, q, s, t, a, b, c, d)
	if take then
		write(key, pack_bytes(law.format, a, b, c), end_ms)
	elseif r > 0 then
		give_ttl(key, end_ms)
	end
	reply[filled] = pack_bytes(FIGURES, wait, remaining, next, full)
end

-- All are evaluated before any is taken; an observed one counts as if alone.
local function decide_many(at, first, n)
	local checks, allowed = {}, true
	for i = 1, n do
		local key = KEYS[first + i]
		local kind, p, q, r, s = unpack_bytes(RECORD, records, at)
		local law = LAWS[kind % 4]
		local check = { key, law, kind, p, q, r, s,
			evaluate(key, law, kind, p, q, r, s) }
		if check[WAIT] > 0 or check[WAIT] == NEVER then
			allowed = allowed and kind >= OBSERVE
		end
		checks[i] = check
		at = at + RECORD_SIZE
	end
	for i = 1, n do
		local check = checks[i]
		conclude(check[1], check[2], allowed or check[3] >= OBSERVE,
			unpack(check, 4, 13))
	end
end

-- The request being decided: where it stands in records, its keys (after
-- how many) and its part of the reply.
local at, first, start = 1, 0, 1

local function decide_all()
	while at <= #records do
		local n, kind, p, q, r, s =
			unpack_bytes('<BBdddd', records, at)
		start = filled
		if n == 1 then
			local key = KEYS[first + 1]
			local law = LAWS[kind % 4]
			conclude(key, law, true, p, q, r, s,
				evaluate(key, law, kind, p, q, r, s))
		else
			decide_many(at + 1, first, n)
		end
		at = at + 1 + n * RECORD_SIZE
		first = first + n
	end
end

-- An error stands in the place of its request; then on with the next.
while true do
	local ok, e = pcall(decide_all)
	if ok then
		return reply
	end
	for i = filled, start + 1, -1 do
		reply[i] = nil
	end
	filled = start + 1
	reply[filled] = { err = type(e) == 'table' and e.err or tostring(e) }
	local n = string.byte(records, at)
	at = at + 1 + n * RECORD_SIZE
	first = first + n
end
