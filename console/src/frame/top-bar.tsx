/** The bar on top: environment, search, palette, live state, theme, keys and who is signed in. */
import {
  ActionIcon,
  Badge,
  Burger,
  Button,
  Group,
  getThemeColor,
  Kbd,
  TextInput,
  Tooltip,
  useMantineColorScheme,
  useMantineTheme,
  VisuallyHidden,
} from '@mantine/core'
import { Link, useNavigate } from '@tanstack/react-router'
import { type FormEvent, useRef, useState } from 'react'
import { useSession } from '../kit/role.tsx'
import iconUrl from './icon.svg'
import { Icon } from './icon.tsx'
import { LiveSign } from './live-sign.tsx'
import { UserMenu } from './user-menu.tsx'

/** Of the search field, which `/` leads to. */
export const SEARCH_ID = 'search'

const PALETTE_KEYS = /Mac|iPhone|iPad/.test(navigator.platform) ? '⌘ K' : 'Ctrl K'

export interface TopBarProps {
  readonly isRailOpen: boolean
  readonly toggleRail: () => void
  readonly openPalette: () => void
  readonly openKeys: () => void
}

export function TopBar({ isRailOpen, toggleRail, openPalette, openKeys }: TopBarProps) {
  const { environment } = useSession()
  const theme = useMantineTheme()
  return (
    <Group
      h="100%"
      px="md"
      gap="md"
      justify="space-between"
      wrap="nowrap"
      className="top-bar"
      __vars={{ '--environment': getThemeColor(environment.colour, theme) }}
    >
      <Group gap="sm" wrap="nowrap">
        <Burger
          hiddenFrom="sm"
          size="sm"
          opened={isRailOpen}
          onClick={toggleRail}
          aria-expanded={isRailOpen}
          aria-label={isRailOpen ? 'Close the list of screens' : 'Open the list of screens'}
        />
        <Link to="/" className="brand">
          <img src={iconUrl} alt="" />
          <span className="wide">Bartleby</span>
          <VisuallyHidden className="narrow">Bartleby</VisuallyHidden>
        </Link>
        <Badge variant="dot" size="lg" color={environment.colour} className="environment">
          <VisuallyHidden>Environment </VisuallyHidden>
          {environment.name}
        </Badge>
      </Group>
      <Search />
      <Group gap="xs" wrap="nowrap">
        <Tooltip label={`Commands and search (${PALETTE_KEYS})`}>
          <Button size="compact-sm" variant="default" onClick={openPalette}>
            <VisuallyHidden>Command palette </VisuallyHidden>
            <Kbd size="xs" visibleFrom="sm">
              {PALETTE_KEYS}
            </Kbd>
            <Group component="span" hiddenFrom="sm">
              <Icon path="M11 4a7 7 0 1 0 0 14a7 7 0 1 0 0-14M16 16l4.5 4.5" />
            </Group>
          </Button>
        </Tooltip>
        <LiveSign />
        <ThemeButton />
        <Tooltip label="Keys (?)">
          <ActionIcon variant="default" aria-label="Keys" onClick={openKeys} visibleFrom="sm">
            ?
          </ActionIcon>
        </Tooltip>
        <UserMenu />
      </Group>
    </Group>
  )
}

function Search() {
  const navigate = useNavigate()
  const [text, setText] = useState('')
  const field = useRef<HTMLInputElement>(null)
  const search = (event: FormEvent) => {
    event.preventDefault()
    void navigate({ to: '/letters', search: text.trim() === '' ? {} : { query: text.trim() } })
    // The next keys are for what was found.
    field.current?.blur()
    setText('')
  }
  return (
    <search className="search wide">
      <form onSubmit={search}>
        <TextInput
          ref={field}
          id={SEARCH_ID}
          size="xs"
          aria-label="Search letters"
          placeholder="Search letters: timeout, engine:hmac, age:>2d …"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Escape') event.currentTarget.blur()
          }}
          rightSection={<Kbd size="xs">/</Kbd>}
        />
      </form>
    </search>
  )
}

const THEMES = {
  auto: { next: 'light', word: 'system', icon: 'M12 4a8 8 0 1 0 0 16a8 8 0 1 0 0-16M12 4v16' },
  light: {
    next: 'dark',
    word: 'light',
    icon: 'M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8M12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6l1.4 1.4M17 17l1.4 1.4M5.6 18.4l1.4-1.4M17 7l1.4-1.4',
  },
  dark: { next: 'auto', word: 'dark', icon: 'M19.5 14.5A8 8 0 0 1 9.5 4.5A8 8 0 1 0 19.5 14.5z' },
} as const

function ThemeButton() {
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const { next, word, icon } = THEMES[colorScheme]
  const label = `Theme: ${word}. Change to ${THEMES[next].word}.`
  return (
    <Tooltip label={label}>
      <ActionIcon variant="default" aria-label={label} onClick={() => setColorScheme(next)}>
        <Icon path={icon} />
      </ActionIcon>
    </Tooltip>
  )
}
