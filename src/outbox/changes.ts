/** Waiting within a process until something is so: whoever changes what others may wait for says so. */
export class Changes {
  #next = Promise.withResolvers<void>()

  /** Resolves once `isSo()`; it is asked again after every change. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await this.#next.promise
  }

  /** Something has changed. */
  signal(): void {
    const { resolve } = this.#next
    this.#next = Promise.withResolvers<void>()
    resolve()
  }
}
