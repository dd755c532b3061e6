/**
 * The system's time at microsecond grain. Node's wall clock has whole milliseconds, so time is a steady high-resolution reading plus an
 * offset. Each wall reading proves an interval for the offset; catching a tick narrows it to some hundred nanoseconds. The lower end is
 * taken: never ahead of the system, at most a few microseconds behind.
 */
import { type Alarm, type Clock, type Instant, instant } from './clock.ts'

export interface TimeSources {
  /** Whole milliseconds since 1970, rounded down. */
  wallMs(): number
  /** Milliseconds with a fraction, running steadily. */
  steadyMs(): number
}

export const NODE_SOURCES: TimeSources = { wallMs: () => Date.now(), steadyMs: () => performance.now() }

const TICK_US = 1_000

/** Larger steps back are followed, smaller ones waited out. */
const FOLLOWED_STEP_US = 1_000_000

/** The offset is checked against a tick so often. Off Linux the clocks part by some parts per million; a check costs 0.5 ms. */
const ANCHOR_VALID_US = 30_000_000

/** Ends the wait for a tick of a stopped clock, as under fake timers. */
const MOST_PROBES = 200_000

/** Waking so often follows steps of the wall clock and never overflows a timer. */
const LONGEST_TIMER_MS = 60_000

export class SystemClock implements Clock {
  readonly #sources: TimeSources
  /** Wall minus steady time. */
  #offsetUs = Number.NEGATIVE_INFINITY
  #anchorExpiryUs = 0
  #lastUs = 0

  constructor(sources: TimeSources = NODE_SOURCES) {
    this.#sources = sources
    this.#anchor()
  }

  now(): Instant {
    const steadyUs = this.#steadyUs()
    const wallUs = this.#sources.wallMs() * 1_000
    const us = steadyUs + this.#offsetUs
    const proved = us >= wallUs && us < wallUs + TICK_US && steadyUs < this.#anchorExpiryUs
    return this.#ascending(Math.floor(proved ? us : this.#correctedUs(steadyUs, wallUs)))
  }

  alarm(deadline: Instant, wake: () => void): Alarm {
    return ringOnce(() => Number(deadline - this.now()), wake)
  }

  after(us: bigint, wake: () => void): Alarm {
    const endUs = this.#steadyUs() + Number(us)
    return ringOnce(() => endUs - this.#steadyUs(), wake)
  }

  /** Never backwards, except after a large step: standing still for hours is worse. */
  #ascending(us: number): Instant {
    if (us > this.#lastUs || us < this.#lastUs - FOLLOWED_STEP_US) this.#lastUs = us
    return instant(BigInt(this.#lastUs))
  }

  /** Moves the offset to fit a steady reading and the wall reading after it. */
  #correctedUs(steadyUs: number, wallUs: number): number {
    const aheadUs = steadyUs + this.#offsetUs - (wallUs + TICK_US - 1)
    // The tick may fall between the two readings: only a later steady reading proves a lag.
    const behindUs = wallUs - (this.#steadyUs() + this.#offsetUs)
    if (aheadUs > TICK_US || behindUs > TICK_US || steadyUs >= this.#anchorExpiryUs) this.#anchor()
    else if (aheadUs > 0) this.#offsetUs -= aheadUs
    else if (behindUs > 0) this.#offsetUs += behindUs
    return this.#steadyUs() + this.#offsetUs
  }

  /** Waits for a tick, at most a millisecond, and moves the offset into the proved interval. */
  #anchor(): void {
    const { wallMs } = this.#sources
    let probeUs = this.#steadyUs()
    const oldMs = wallMs()
    let beforeUs: number
    let newMs: number
    let probes = 0
    do {
      beforeUs = probeUs
      probeUs = this.#steadyUs()
      newMs = wallMs()
      probes += 1
    } while (newMs === oldMs && probes < MOST_PROBES)
    const afterUs = this.#steadyUs()
    const lowestUs = newMs * 1_000 - afterUs
    const highestUs = (oldMs + 1) * 1_000 - beforeUs
    if (!(this.#offsetUs >= lowestUs && this.#offsetUs <= highestUs)) this.#offsetUs = lowestUs
    this.#anchorExpiryUs = afterUs + ANCHOR_VALID_US
  }

  #steadyUs(): number {
    return this.#sources.steadyMs() * 1_000
  }
}

let shared: Clock | undefined

/** For real time whatever tests set: watchdogs, hellos, waits for a database. */
export const systemClock = (): Clock => {
  shared ??= new SystemClock()
  return shared
}

function ringOnce(leftUs: () => number, wake: () => void): Alarm {
  let timer: NodeJS.Timeout
  const arm = (us: number): void => {
    const ms = Math.trunc(us / 1_000) + 1
    timer = setTimeout(ring, Math.min(Math.max(ms, 1), LONGEST_TIMER_MS))
    // An idle library must not keep its process alive; a server's socket does.
    timer.unref()
  }
  const ring = (): void => {
    const us = leftUs()
    if (us < 0) wake()
    else arm(us)
  }
  arm(leftUs())
  return { cancel: () => clearTimeout(timer) }
}
