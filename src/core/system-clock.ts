/**
 * The computer's own time at microsecond grain. Node tells wall time in whole milliseconds only, so it is
 * computed as a steady high-resolution reading plus an offset. Each reading of the wall clock proves an
 * interval in which the true offset lies; the offset is kept inside it. Catching the wall clock in the act
 * of ticking makes that interval some hundred nanoseconds wide, and its lower end is taken: the clock is
 * never ahead of the system's and a few microseconds behind it at most.
 */
import { type Alarm, type Clock, type Instant, instant } from './clock.ts'

/** Where time comes from; replaced in tests. */
export interface TimeSources {
  /** Wall time in whole milliseconds since 1970, cut down. */
  wallMs(): number
  /** Milliseconds since some moment, with a fraction, running steadily. */
  steadyMs(): number
}

/** The clocks of the machine, as Node reads them. */
export const NODE_SOURCES: TimeSources = { wallMs: () => Date.now(), steadyMs: () => performance.now() }

const TICK_US = 1_000

/** A step back of the system clock is followed when larger than this, else waited out by standing still. */
const FOLLOWED_STEP_US = 1_000_000

/**
 * The offset is checked against a tick this often, when the clock is read at all. The steady and the wall
 * clock run at the same rate on Linux, elsewhere they part by some parts per million; a check costs 0.5 ms.
 */
const ANCHOR_VALID_US = 30_000_000

/** Ends the wait for a tick when the wall clock is a stopped one, as under a test's fake timers. */
const MOST_PROBES = 200_000

/** Timers run steadily: waking at least this often follows steps of the wall clock, and never overflows. */
const LONGEST_TIMER_MS = 60_000

export class SystemClock implements Clock {
  readonly #sources: TimeSources
  /** Wall time minus steady time, in microseconds. */
  #offsetUs = Number.NEGATIVE_INFINITY
  /** In steady time. */
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

  /** Never backwards, except to follow a large step of the system clock: standing still for hours is worse. */
  #ascending(us: number): Instant {
    if (us > this.#lastUs || us < this.#lastUs - FOLLOWED_STEP_US) this.#lastUs = us
    return instant(BigInt(this.#lastUs))
  }

  /** The present, after moving the offset to where a steady reading and the wall reading after it want it. */
  #correctedUs(steadyUs: number, wallUs: number): number {
    const aheadUs = steadyUs + this.#offsetUs - (wallUs + TICK_US - 1)
    // The tick may have fallen between the two readings: only a later steady reading proves that we lag.
    const behindUs = wallUs - (this.#steadyUs() + this.#offsetUs)
    if (aheadUs > TICK_US || behindUs > TICK_US || steadyUs >= this.#anchorExpiryUs) this.#anchor()
    else if (aheadUs > 0) this.#offsetUs -= aheadUs
    else if (behindUs > 0) this.#offsetUs += behindUs
    return this.#steadyUs() + this.#offsetUs
  }

  /** Waits for the wall clock to tick, at most a millisecond, and moves the offset into what that proves. */
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

/** One for all that measure real time, whatever time tests make it for the office: watchdogs, hellos, the wait for a database. */
export const systemClock = (): Clock => {
  shared ??= new SystemClock()
  return shared
}

/** Calls `wake` as soon as less than nothing is left. */
function ringOnce(leftUs: () => number, wake: () => void): Alarm {
  let timer: NodeJS.Timeout
  const arm = (us: number): void => {
    const ms = Math.trunc(us / 1_000) + 1
    timer = setTimeout(ring, Math.min(Math.max(ms, 1), LONGEST_TIMER_MS))
    // An idle library must not keep its process alive; a server is kept alive by its socket.
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
