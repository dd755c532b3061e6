/** The rail on the left: all screens, with the number of pending letters where they wait. */
import { Badge, NavLink, ScrollArea, Text } from '@mantine/core'
import { Link, useLocation } from '@tanstack/react-router'
import { useLive } from '../live/live.tsx'
import { grouped } from '../time/format.ts'
import { SCREENS, type Screen } from './screens.ts'

const GROUPS = [
  ['office', null],
  ['sources', 'Sources'],
  ['records', null],
] as const

export function Rail({ close }: { readonly close: () => void }) {
  const { pathname } = useLocation()
  const { standing } = useLive()
  const pending = standing?.Pending
  const isHere = ({ to }: Screen) => (to === '/' ? pathname === '/' : pathname.startsWith(to))
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
              label={screen.title}
              active={isHere(screen)}
              aria-current={isHere(screen) ? 'page' : undefined}
              renderRoot={(props) => <Link to={screen.to} {...props} />}
              onClick={close}
              rightSection={
                screen.to === '/letters' && pending !== undefined ? (
                  <Badge
                    size="sm"
                    variant="light"
                    color="orange"
                    className="badge"
                    aria-label={`${pending} pending`}
                  >
                    {grouped(pending)}
                  </Badge>
                ) : undefined
              }
            />
          ))}
        </div>
      ))}
    </ScrollArea>
  )
}
