/** The command line of `npm run bench -- console`. */
import { parseArgs } from 'node:util'
import type { Dialect } from '../letters/sql.ts'

export const usage = `npm run bench -- console [options]
  --only STORE   postgres or sqlite; default: both
  --quick        20,000 letters, fewer page loads: to see that everything runs
  --write        write the result to docs/benchmarks.md
  --help`

export interface Flags {
  readonly stores: readonly Dialect[]
  readonly letters: number
  /** How often each page is opened. */
  readonly loads: number
  /** How long the server is watched while a console is open and nothing happens. */
  readonly idleSeconds: number
  readonly write: boolean
}

const stores: readonly Dialect[] = ['postgres', 'sqlite']

/** Throws an error that names the flag when one is wrong; null means that help was asked for. */
export function readFlags(args: readonly string[]): Flags | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string' },
      quick: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return null
  const only = stores.find((store) => store === values.only)
  if (values.only !== undefined && only === undefined) {
    throw new Error(`--only: '${values.only}' is neither postgres nor sqlite\n\n${usage}`)
  }
  return {
    stores: only === undefined ? stores : [only],
    letters: values.quick ? 20_000 : 1_000_000,
    loads: values.quick ? 3 : 9,
    idleSeconds: values.quick ? 5 : 60,
    write: values.write,
  }
}
