-- Redis gives its scripts these; the fragments in lua/ give each other the
-- rest, as they are pasted into one script.
std = 'lua51'
read_globals = { 'redis', 'struct', 'KEYS', 'ARGV' }

local laws = {
	'NEVER', 'NO_STATE', 'RECORD', 'RECORD_SIZE', 'LAWS', 'bucket', 'fixed', 'sliding',
	'ceil_div', 'foreign', 'now', 'now_ms', 'pack_bytes', 'try',
	'unpack_bytes', 'write',
}
files['lua/now.lua'].ignore = { '211' }
files['lua/laws.lua'] = { read_globals = { 'now_us' }, ignore = { '211' } }
files['lua/check.lua'].read_globals = laws
files['lua/refund.lua'].read_globals = laws
