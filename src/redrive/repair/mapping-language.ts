/** The language of mappings: JSONata, less what would give another result each time or is read from elsewhere. */
import jsonata from 'jsonata'

/**
 * What a plan shows is what is sent, by whatever server and whenever: functions that look at the clock or throw dice are off. So is
 * `$eval`, which would take expressions from payloads.
 */
export const SWITCHED_OFF = ['now', 'millis', 'random', 'shuffle', 'eval'] as const

/** What is said to whoever calls one of them. */
export const whyOff = (name: string): string =>
  name === 'eval'
    ? '$eval is not available: payloads are not to be run'
    : `$${name} is not available: it gives something else each time, and what a plan shows must be what is sent`

/** What is wrong with a mapping; null when it can be run. */
export function mappingProblem(mapping: string): string | null {
  if (mapping.trim() === '') return 'it is empty'
  try {
    const off = switchedOffIn(jsonata(mapping).ast())
    return off === undefined ? null : whyOff(off)
  } catch (error) {
    return error instanceof RangeError ? 'it is nested too deeply' : syntaxProblem(mapping, error)
  }
}

/** The first switched-off function that an expression names. */
function switchedOffIn(expression: object): string | undefined {
  const seen = new Set<object>()
  const waiting: object[] = [expression]
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (seen.has(node)) continue
    seen.add(node)
    const { type, value } = node as { readonly type?: unknown; readonly value?: unknown }
    const off = type === 'variable' ? SWITCHED_OFF.find((name) => name === value) : undefined
    if (off !== undefined) return off
    for (const part of Object.values(node)) if (typeof part === 'object' && part !== null) waiting.push(part)
  }
  return undefined
}

/** JSONata throws objects with a position: behind the word at which it did not understand the expression. */
function syntaxProblem(mapping: string, thrown: unknown): string {
  const { message, position } = Object(thrown) as { readonly message?: unknown; readonly position?: unknown }
  const said = typeof message === 'string' ? message : 'it is no JSONata expression'
  if (typeof position !== 'number') return said
  const before = mapping.slice(0, position).split('\n')
  return `${said}, at line ${before.length}, character ${before.at(-1)?.length ?? 0}`
}
