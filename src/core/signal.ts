/** Waiting within a process until something is so: whoever changes what others may wait for notifies them. */
export class Signal {
  /** null: nobody waits, and nobody has to be told. */
  #next: PromiseWithResolvers<void> | null = null

  /** Resolves once `isSo()`; it is asked again after every change. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      this.#next ??= Promise.withResolvers<void>()
      await this.#next.promise
    }
  }

  /** The same, and at the latest after so long. */
  async within(ms: number, isSo: () => boolean): Promise<void> {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.notify()
    }, ms)
    await this.until(() => isLate || isSo())
    clearTimeout(timer)
  }

  notify(): void {
    const next = this.#next
    this.#next = null
    next?.resolve()
  }
}
