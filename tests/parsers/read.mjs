// Reads heads, a JSON object {name: value} a line, and writes what the
// parsers of the npm registry make of each, a JSON object a line.
import readline from 'node:readline';
import { parseRateLimit } from 'ratelimit-header-parser';
import { parseList } from 'structured-headers';

function list(value) {
  if (value === undefined)
    return null;
  return parseList(value).map(([item, parameters]) =>
    [item, Object.fromEntries(parameters)]);
}

// Of one family: the parser takes the first that it finds.
function numbers(head, prefix, reset) {
  const own = Object.fromEntries(Object.entries(head).filter(
    ([name]) => name.startsWith(prefix)));
  const parsed = parseRateLimit(own, { reset });
  return parsed && { limit: parsed.limit, remaining: parsed.remaining,
    reset: parsed.reset.getTime() / 1000 };
}

function read(line) {
  const head = JSON.parse(line);
  try {
    return {
      policy: list(head['ratelimit-policy']),
      rate: list(head['ratelimit']),
      quota: list(head['ratelimit-limit']),
      x: numbers(head, 'x-ratelimit-', process.argv[2]),
      draft03: numbers(head, 'ratelimit-', 'seconds'),
    };
  } catch (error) {
    return { error: String(error) };
  }
}

for await (const line of readline.createInterface({ input: process.stdin }))
  console.log(JSON.stringify(read(line)));
