/** How much memory this process takes over time. */

const EVERY_MS = 20
const MB = 2 ** 20

export class MemoryWatch {
  readonly #samples: { readonly atMs: number; readonly mb: number }[] = []
  readonly #timer: NodeJS.Timeout

  constructor() {
    this.#look()
    this.#timer = setInterval(() => this.#look(), EVERY_MS)
  }

  /** The most from one moment on, up to another; of `performance.now()`. */
  peak(fromMs: number, toMs: number): number {
    const within = this.#samples.filter(({ atMs }) => atMs >= fromMs && atMs <= toMs)
    return Math.max(...within.map(({ mb }) => mb))
  }

  /** What it takes now, in MB. */
  get now(): number {
    return process.memoryUsage.rss() / MB
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    this.#samples.push({ atMs: performance.now(), mb: this.now })
  }
}
