/** Who is looking, and what the role allows. */
import { useSuspenseQuery } from '@tanstack/react-query'
import { sessionQuery } from '../api/queries.ts'
import { ROLES, type Role, type Session } from '../api/types.ts'

export const useSession = (): Session => useSuspenseQuery(sessionQuery).data

/** Why an act that needs `needed` is not allowed; null when it is. */
export function useRefusal(needed: Role): string | null {
  const { role } = useSession()
  if (role !== null && ROLES.indexOf(role) >= ROLES.indexOf(needed)) return null
  return `Needs the role ${needed}; yours is ${role ?? 'none'}.`
}
