/** Waiting within a process until something is so: whoever changes what others may wait for says so. */
export class Changes {
  #next = Promise.withResolvers<void>()

  /** Resolves once `isSo()`; it is asked again after every change. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await this.#next.promise
  }

  /** The same, and at the latest after so long. */
  async within(ms: number, isSo: () => boolean): Promise<void> {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.signal()
    }, ms)
    await this.until(() => isLate || isSo())
    clearTimeout(timer)
  }

  /** Something has changed. */
  signal(): void {
    const { resolve } = this.#next
    this.#next = Promise.withResolvers<void>()
    resolve()
  }
}
