/** How long a command waits for outcomes. */
import { parseGoDuration } from '../../core/duration.ts'
import { usage } from '../exit.ts'

/** `--wait-timeout` in milliseconds. */
export function waitTimeoutMs(text: string): number {
  const duration = parseGoDuration(text)
  if (!duration.ok || duration.ns < 0n) {
    throw usage(`--wait-timeout is '${text}'; expected a duration such as 30s, 5m or 1h`)
  }
  return Number(duration.ns / 1_000_000n)
}
