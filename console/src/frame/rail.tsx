/** The rail on the left: all screens, with the number of pending letters where they wait. */
import { Badge, NavLink, ScrollArea, Text, VisuallyHidden } from '@mantine/core'
import { Link, useLocation } from '@tanstack/react-router'
import type { Session } from '../api/types.ts'
import { useSession } from '../kit/role.tsx'
import { useLive } from '../live/live.tsx'
import { useRunning } from '../redrives/use-running.ts'
import { grouped, short } from '../time/format.ts'
import { Icon } from './icon.tsx'
import { SCREENS, type Screen } from './screens.ts'

const GROUPS = [
  ['office', null],
  ['sources', 'Sources'],
  ['records', 'Records'],
] as const

interface RailLink {
  readonly to: Screen['to']
  readonly title: string
  readonly icon: string
  /** Left out: the screen as a whole. */
  readonly search?: { readonly query: string }
  /** A source that this server has not been given. */
  readonly isOff?: boolean
}

const LETTERS_OF_SOURCE = 'M3 6h18v12H3zM3.5 7l8.5 6.5L20.5 7'

export function Rail({ close }: { readonly close: () => void }) {
  const { pathname } = useLocation()
  const { navigation } = useSession()
  const isHere = ({ to, search }: RailLink) =>
    search === undefined && (pathname === to || (to !== '/' && pathname.startsWith(`${to}/`)))
  return (
    <ScrollArea component="nav" aria-label="Screens" p="xs">
      {GROUPS.map(([group, title]) => (
        <div key={group}>
          {title !== null && (
            <Text size="xs" fw={600} c="var(--quiet)" mt="md" mb={4} px="sm">
              {title}
            </Text>
          )}
          {(group === 'sources'
            ? sourceLinks(navigation)
            : SCREENS.filter((screen) => screen.group === group)
          ).map((screen: RailLink) => (
            <NavLink
              key={screen.title}
              className="rail-link"
              label={screen.title}
              leftSection={<Icon path={screen.icon} />}
              active={isHere(screen)}
              aria-current={isHere(screen) ? 'page' : undefined}
              renderRoot={(props) => <Link to={screen.to} search={screen.search ?? {}} {...props} />}
              onClick={close}
              rightSection={<Beside link={screen} />}
            />
          ))}
        </div>
      ))}
    </ScrollArea>
  )
}

/** How many wait or run there. */
function Beside({ link: { to, search, isOff } }: { readonly link: RailLink }) {
  const { standing } = useLive()
  if (isOff === true)
    return (
      <Text size="xs" c="var(--quiet)">
        off
      </Text>
    )
  if (to === '/letters' && search === undefined && standing !== null)
    return <CountBadge of={standing.Pending} word="pending" colour="orange" />
  return to === '/redrives' ? <Redrives /> : null
}

function Redrives() {
  const { running, paused } = useRunning()
  return (
    <>
      {running > 0 && (
        <CountBadge
          of={running}
          word={running === 1 ? 'running redrive' : 'running redrives'}
          colour="blue"
        />
      )}
      {paused > 0 && <CountBadge of={paused} word="paused" colour="gray" isSpelt />}
    </>
  )
}

/** Short enough for the rail; the exact number on hover. */
function CountBadge({
  of,
  word,
  colour,
  isSpelt = false,
}: {
  readonly of: number
  readonly word: string
  readonly colour: string
  readonly isSpelt?: boolean
}) {
  return (
    <Badge
      size="sm"
      variant="light"
      color={colour}
      className="badge numbers"
      title={`${grouped(of)} ${word}`}
    >
      {short(of)}
      {isSpelt ? ` ${word}` : <VisuallyHidden> {word}</VisuallyHidden>}
    </Badge>
  )
}

/** The sources of the server: each with its own screen, or else with its letters. */
function sourceLinks(navigation: Session['navigation']): readonly RailLink[] {
  return navigation.map(({ name, title, present }) => {
    const screen = SCREENS.find(({ to }) => to === `/sources/${name}`)
    return screen === undefined
      ? {
          to: '/letters',
          search: { query: `source:${name}` },
          title,
          icon: LETTERS_OF_SOURCE,
          isOff: !present,
        }
      : { ...screen, isOff: !present }
  })
}
