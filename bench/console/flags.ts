/** The command line of `npm run bench -- console`. */
import { readCommandLine } from '../command-line.ts'

const usage = `npm run bench -- console [options]
  --only STORE   postgres or sqlite; default: both
  --quick        20,000 letters, fewer page loads: to see that everything runs
  --write        write the result to docs/benchmarks.md
  --help`

export type Flags = NonNullable<ReturnType<typeof readFlags>>

export function readFlags(args: readonly string[]) {
  const line = readCommandLine(args, { usage })
  return (
    line && {
      ...line,
      letters: line.quick ? 20_000 : 1_000_000,
      /** How often each page is opened. */
      loads: line.quick ? 3 : 9,
      /** How long the server is watched while a console is open and nothing happens. */
      idleSeconds: line.quick ? 5 : 60,
    }
  )
}
