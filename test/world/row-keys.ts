/** Row keys of a name and a time, whatever number their row has: `time` is as it stands in a key, with its microseconds. */
export function keysOf(name: string, time: string): RegExp {
  const literal = `${name}-${time.replace(/Z$/, '')}`.replace(/[^\w-]/g, '\\$&')
  return new RegExp(`^${literal}\\d{12}Z$`)
}
