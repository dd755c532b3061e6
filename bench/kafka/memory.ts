/** Memory of this process. */
import { readFileSync } from 'node:fs'

/** The most that it ever took, in MB. */
export const peakRssMb = (): number => {
  const found = /VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))
  return Number(found?.[1] ?? Number.NaN) / 1024
}
