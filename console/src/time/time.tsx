/** Times on the page: relative, with the absolute one on hover, in UTC or local time as the reader chose; they age by themselves. */
import { Tooltip } from '@mantine/core'
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react'
import { keep, kept } from '../kit/kept.ts'
import { absolute, relative, type Zone } from './format.ts'

interface TimeSetting {
  readonly zone: Zone
  setZone(zone: Zone): void
  /** Moves every ten seconds. */
  readonly now: number
}

const TimeContext = createContext<TimeSetting>({ zone: 'utc', setZone: () => {}, now: Date.now() })

const KEPT_AS = 'bartleby.zone'
const TICK_MS = 10_000

export const useTime = (): TimeSetting => useContext(TimeContext)

/** Gives `useTime` and `<Time>` their zone and their present. */
export function TimeProvider({ children }: { readonly children: ReactNode }) {
  const [zone, setZone] = useState<Zone>(() => (kept('browser', KEPT_AS) === 'local' ? 'local' : 'utc'))
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS)
    return () => clearInterval(timer)
  }, [])
  const setting = useMemo(
    () => ({
      zone,
      now,
      setZone: (chosen: Zone) => {
        keep('browser', KEPT_AS, chosen)
        setZone(chosen)
      },
    }),
    [zone, now],
  )
  return <TimeContext value={setting}>{children}</TimeContext>
}

/** A time, as long ago as it is. */
export function Time({ at }: { readonly at: string | null }) {
  const { zone, now } = useTime()
  if (at === null) return <span>–</span>
  const moment = new Date(at).getTime()
  return (
    <Tooltip label={absolute(at, zone)}>
      <time dateTime={at}>{relative(moment, Math.max(now, Math.min(moment, Date.now())))}</time>
    </Tooltip>
  )
}

/** A time in full. */
export function FullTime({ at }: { readonly at: string }) {
  const { zone } = useTime()
  return <time dateTime={at}>{absolute(at, zone)}</time>
}
