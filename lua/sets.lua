-- The laws that keep a sorted set; how they are called: see wide.lua.
local HOLD = 15000000 -- a slot that is not renewed is free after it
local BUSY = 1000000 -- when to ask again for a slot

local function make_sets()
	-- A sorted set: members of 16 bytes (a number of their own, units) by
	-- time, and below all times c, by less the number given last, and n,
	-- by the sum of the units. dead: entries that are out, still there.
	local log = {}
	local BELOW = '(100000'

	function log.read(_, _, at)
		return at
	end

	function log.units(member)
		local _, units = unpack_bytes('>dd', member)
		return units
	end

	-- Entries that are out are passed over: they only go when one comes
	-- that is later, or a clock set back would find them missing.
	local function pass_over(k)
		local out = must('ZRANGEBYSCORE', k.key, BELOW, k.t - k.q)
		k.dead = #out
		for i = 1, #out do
			k.n = k.n - log.units(out[i])
		end
		local first = must('ZRANGE', k.key, 2 + k.dead, 2 + k.dead,
			'WITHSCORES')
		k.oldest = tonumber(first[2])
	end

	function log.stand(k)
		local head = try('ZRANGE', k.key, 0, 2, 'WITHSCORES')
		k.t, k.n, k.total, k.serial, k.dead = now, 0, 0, 0, 0
		if head.err then
			return foreign(head)
		elseif #head == 0 then
			return 0
		elseif head[1] ~= 'c' or head[3] ~= 'n' or #head < 6 or
			#head[5] ~= 16 then
			return NO_STATE
		end
		k.serial, k.total = -tonumber(head[2]), tonumber(head[4])
		k.n, k.oldest = k.total, tonumber(head[6])
		local last = must('ZRANGE', k.key, -1, -1, 'WITHSCORES')
		k.newest = tonumber(last[2])
		if k.newest > k.t then
			k.t = k.newest
		end
		if k.oldest <= k.t - k.q then
			pass_over(k)
		end
		return 0
	end

	-- When so many units are out.
	local function log_wait(k, units)
		local rank = 2 + k.dead
		local at = k.newest
		repeat
			local some = must('ZRANGE', k.key, rank, rank + 99,
				'WITHSCORES')
			for i = 1, #some, 2 do
				units = units - log.units(some[i])
				if units <= 0 then
					at = tonumber(some[i + 1])
					break
				end
			end
			rank = rank + 100
		until units <= 0 or #some == 0
		return at + k.q - k.t
	end

	function log.look(k)
		if log.stand(k) == NO_STATE then
			return NO_STATE
		elseif k.r == 0 or k.n <= k.p - k.r then
			return 0
		elseif k.r > k.p then
			return NEVER
		end
		return log_wait(k, k.n + k.r - k.p)
	end

	function log.take(k)
		k.total = k.n + k.r
		k.n, k.serial = k.n + k.r, k.serial + 1
		k.oldest, k.newest = k.oldest or k.t, k.t
	end

	function log.tell(k)
		local left = k.p > k.n and k.p - k.n or 0
		local full, next = 0, 0
		if k.n > 0 then
			full = k.newest + k.q - k.t
		end
		if k.n > k.p then
			next = log_wait(k, k.n + 1 - k.p)
		elseif k.n > 0 then
			next = k.oldest + k.q - k.t
		end
		return left, next, full, ceil_div(k.t + full, 1000)
	end

	function log.add(k, at, units, end_ms)
		must('ZADD', k.key, at, pack_bytes('>dd', k.serial, units),
			k.total, 'n', -k.serial, 'c')
		must('PEXPIRE', k.key, end_ms + 1 - now_ms)
	end

	function log.write(k, end_ms)
		log.add(k, k.t, k.r, end_ms)
		if k.dead > 0 then
			must('ZREMRANGEBYSCORE', k.key, BELOW, k.t - k.q)
		end
	end

	-- A sorted set: the names of slots by the time until which they are
	-- held.
	local slots = {}

	function slots.read(k, records, at)
		local length = string.byte(records, at)
		k.slot = string.sub(records, at + 1, at + length)
		return at + 1 + length
	end

	function slots.stand(k)
		local last = try('ZRANGE', k.key, -1, -1, 'WITHSCORES')
		k.t = now
		if last.err then
			return foreign(last)
		end
		local seen = tonumber(last[2] or 0) - HOLD
		if not (seen % 1 == 0 and seen <= MAX) then
			return NO_STATE
		elseif seen > k.t then
			k.t = seen
		end
		return 0
	end

	function slots.look(k)
		if slots.stand(k) == NO_STATE then
			return NO_STATE
		end
		k.n = must('ZCOUNT', k.key, string.format('(%.0f', k.t), '+inf')
		return (k.r == 0 or k.n < k.p) and 0 or BUSY
	end

	function slots.take(k)
		k.n = k.n + 1
	end

	function slots.tell(k)
		return k.p > k.n and k.p - k.n or 0, 0, 0,
			ceil_div(k.t + HOLD, 1000)
	end

	-- The first write is one that a full server refuses.
	function slots.write(k, end_ms)
		must('ZADD', k.key, k.t + HOLD, k.slot)
		must('ZREMRANGEBYSCORE', k.key, '-inf', k.t)
		must('PEXPIRE', k.key, end_ms + 1 - now_ms)
	end

	-- A slot that is not there, as the server has lost it, is put back.
	function slots.renew(k)
		if slots.stand(k) == NO_STATE then
			return 0
		end
		slots.write(k, ceil_div(k.t + HOLD, 1000))
		return 1
	end

	return log, slots
end
