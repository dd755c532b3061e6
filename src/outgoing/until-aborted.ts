/** Waiting that can be given up. */

/** What `work` gives, unless the signal is aborted before; the work itself goes on. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const end = (): void => reject(signal.reason)
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', end)
  }
}
