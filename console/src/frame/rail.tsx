/** The rail on the left: all screens, with the number of pending letters where they wait. */
import { Badge, NavLink, ScrollArea, Text, VisuallyHidden } from '@mantine/core'
import { Link, useLocation } from '@tanstack/react-router'
import type { Session } from '../api/types.ts'
import { useSession } from '../kit/role.tsx'
import { useLive } from '../live/live.tsx'
import { grouped } from '../time/format.ts'
import { Icon } from './icon.tsx'
import { SCREENS, type Screen } from './screens.ts'

const GROUPS = [
  ['office', null],
  ['sources', 'Sources'],
  ['records', 'Records'],
] as const

export function Rail({ close }: { readonly close: () => void }) {
  const { pathname } = useLocation()
  const { sources } = useSession()
  const { standing } = useLive()
  const isHere = ({ to }: Screen) => pathname === to || (to !== '/' && pathname.startsWith(`${to}/`))
  return (
    <ScrollArea component="nav" aria-label="Screens" p="xs">
      {GROUPS.map(([group, title]) => (
        <div key={group}>
          {title !== null && (
            <Text size="xs" fw={600} c="var(--quiet)" mt="md" mb={4} px="sm">
              {title}
            </Text>
          )}
          {SCREENS.filter((screen) => screen.group === group).map((screen) => (
            <NavLink
              key={screen.to}
              className="rail-link"
              label={screen.title}
              leftSection={<Icon path={screen.icon} />}
              active={isHere(screen)}
              aria-current={isHere(screen) ? 'page' : undefined}
              renderRoot={(props) => <Link to={screen.to} {...props} />}
              onClick={close}
              rightSection={
                screen.to === '/letters' && standing !== null ? (
                  <Badge size="sm" variant="light" color="orange" className="badge numbers">
                    {grouped(standing.Pending)}
                    <VisuallyHidden> pending</VisuallyHidden>
                  </Badge>
                ) : isOff(screen, sources) ? (
                  <Text size="xs" c="var(--quiet)">
                    off
                  </Text>
                ) : undefined
              }
            />
          ))}
        </div>
      ))}
    </ScrollArea>
  )
}

/** A source that this server has not been given. */
function isOff({ to }: Screen, sources: Session['sources']): boolean {
  switch (to) {
    case '/sources/outbox':
      return !sources.outbox
    case '/sources/webhooks':
      return !sources.webhooks
    case '/sources/kafka':
      return !sources.kafka
    default:
      return false
  }
}
