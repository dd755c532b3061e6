/** What callers may do, each also what those before it may: read, act, configure and purge. */
export const ROLES = ['viewer', 'operator', 'admin'] as const
export type Role = (typeof ROLES)[number]
