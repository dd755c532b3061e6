/** How often a screen reads anew what no event tells of. */
import { useLive } from '../live/live.tsx'

const REFRESH_MS = 4_000

/** Every few seconds while the page is visible (the queries see to that); never while the reader has paused. */
export function useRefresh(): number | false {
  const { isPaused } = useLive()
  return isPaused ? false : REFRESH_MS
}
