/** How long a job waits after a failed attempt. */

/**
 * The delay before attempt `attempt + 1`, after `attempt` failures: the values of the list in turn; from the last one on,
 * that value times one, two, three and so on.
 */
export function retryDelaySeconds(list: readonly number[], attempt: number): number {
  const steps = attempt - list.length + 1
  return steps < 1 ? (list[attempt - 1] ?? 0) : (list.at(-1) ?? 0) * steps
}
