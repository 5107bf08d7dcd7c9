-- Decides a list of requests, each all or nothing.
--
-- KEYS     the keys of all checks, in order
-- ARGV[1]  for each request: a byte each, its number of checks and of keys;
--          two bytes, the length of what follows; then for each check a
--          record (see laws.lua and wide.lua)
--
-- Returns a flat list: now (a double as 8 bytes), then for each request
-- either an error (an outage for it) or for each check four doubles as 32
-- bytes: wait, remaining, next, full. A leaky bucket's, and that of a key
-- with its own counts, has two more: the delay of a request that is allowed,
-- and the limit; with own counts then the one that was gone by. A lease's has
-- eight: own counts or 0, then the units that were taken; it has no penalty.
-- The last of a check with one is what is left of that; where it has more than
-- four others it has at least seven (no own count: 0).
-- wait: 0 allowed, > 0 refused for so long, -1 refused for ever, -2 the
-- key holds something else.
--@include now.lua
--@include laws.lua
--@include own.lua
--@include sets.lua
--@include wide.lua
local FIGURES = '<dddd'
local OWN_FIGURES = '<ddddddd'
local LEASE_FIGURES = '<dddddddd'
local NOTHING = pack_bytes(FIGURES, NO_STATE, 0, 0, 0)
local WAIT = 9 -- where it stands among what decide_many keeps of a check
local HEADER_SIZE = 4

local records = ARGV[1]
local reply, filled = { pack_bytes('<d', now) }, 1

-- count, p, q, r, s, and how that stands by the law. count: the key's own,
-- which is asked for if own_key; else false.
local function weigh(key, law, kind, p, q, r, s, own_key, own_at)
	local count = false
	local value, text
	if own_key then
		value, text = get_both(key, own_key)
		if text then
			count, p, q, s = own(text, records, own_at, kind, p, q,
				s)
		end
	else
		value = try('GET', key)
	end
	if value and #value ~= law.size then
		return count, p, q, r, s, foreign(value)
	end
	return count, p, q, r, s, law.evaluate(value, kind, p, q, r, s)
end

-- Takes the cost if `take`, and tells the figures. most: of a lease, or false.
local function conclude(key, law, take, most, count, p, q, r, s, wait, t, a, b,
	c, d)
	filled = filled + 1
	if wait == NO_STATE then
		reply[filled] = NOTHING
		return
	end
	take = take and wait == 0 and r > 0
	if take and most then
		local left = law.tell(p, q, s, t, a, b, c, d)
		r = left < most and left or most
	end
	if take and law == bucket then
		b = b - r * q
	elseif take then
		b = b + r
	end
	local remaining, next, full, end_ms = law.tell(p, q, s, t, a, b, c, d)
	if take then
		write(key, pack_bytes(law.format, a, b, c), end_ms)
	elseif r > 0 then
		give_ttl(key, end_ms, law == bucket)
	end
	if most then
		reply[filled] = pack_bytes(LEASE_FIGURES, wait, remaining, next,
			full, 0, law == bucket and s or p, count or 0,
			take and r or 0)
	elseif count then
		reply[filled] = pack_bytes(OWN_FIGURES, wait, remaining, next,
			full, 0, law == bucket and s or p, count)
	else
		reply[filled] = pack_bytes(FIGURES, wait, remaining, next, full)
	end
end

local wide

local function conclude_wide(k, take)
	filled = filled + 1
	reply[filled] = k.wait == NO_STATE and NOTHING or wide.conclude(k, take)
end

-- All are evaluated before any is taken; an observed one counts as if alone.
local function decide_many(at, key, n)
	local checks, allowed = {}, true
	for i = 1, n do
		local kind, p, q, r, s = unpack_bytes(RECORD, records, at)
		local check, wait
		if kind % LEASE < PENALTY and kind % FIRST < WIDE then
			local law, name = LAWS[kind % FIRST], KEYS[key + 1]
			local own_key = kind % LEASE >= OWN and KEYS[key + 2]
			at = at + RECORD_SIZE
			check = { name, law, kind, weigh(name, law, kind, p, q,
				r, s, own_key, at) }
			wait = check[WAIT]
			key = key + (own_key and 2 or 1)
			at = at + (own_key and OWN_SIZE or 0)
			if kind >= LEASE then
				check.most, at = unpack_bytes('<d', records, at)
			end
		else
			wide = wide or make_wide()
			check, at, key = wide.read(records, at, key)
			wide.look(check)
			wait = check.wait
		end
		if wait > 0 or wait == NEVER then
			allowed = allowed and kind % (2 * OBSERVE) >= OBSERVE
		end
		checks[i] = check
	end
	for i = 1, n do
		local check = checks[i]
		local kind = check.kind or check[3]
		local take = allowed or kind % (2 * OBSERVE) >= OBSERVE
		if check.kind then
			conclude_wide(check, take)
		else
			conclude(check[1], check[2], take,
				check.most or false, unpack(check, 4, 14))
		end
	end
end

-- The request being decided: where it stands in records, its keys (after
-- how many) and its part of the reply.
local at, first, start = 1, 0, 1

local function decide_all()
	while at <= #records do
		local n, keys, size, kind, p, q, r, s =
			unpack_bytes('<BBHBdddd', records, at)
		start = filled
		if n == 1 and kind < PENALTY and kind % FIRST < WIDE then
			local key = KEYS[first + 1]
			local law = LAWS[kind % FIRST]
			conclude(key, law, true, false, weigh(key, law, kind, p,
				q, r, s, kind >= OWN and KEYS[first + 2],
				at + HEADER_SIZE + RECORD_SIZE))
		else
			decide_many(at + HEADER_SIZE, first, n)
		end
		at = at + HEADER_SIZE + size
		first = first + keys
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
	local _, keys, size = unpack_bytes('<BBH', records, at)
	at = at + HEADER_SIZE + size
	first = first + keys
end
