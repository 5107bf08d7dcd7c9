-- Keeps slots of concurrency limits held for another while.
--
-- KEYS     the key of each slot's set
-- ARGV[1]  for each: a byte, the length of its name, and the name
--
-- Returns how many are held.
--@include now.lua
--@include laws.lua
--@include sets.lua
local _, slots = make_sets()
local names = ARGV[1]
local at, held = 1, 0
for i = 1, #KEYS do
	local k = { key = KEYS[i] }
	at = slots.read(k, names, at)
	held = held + slots.renew(k)
end
return held
