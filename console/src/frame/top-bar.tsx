/** The bar on top: environment, search, palette, live state, theme, time zone and who is signed in. */
import {
  ActionIcon,
  Badge,
  Burger,
  Button,
  Group,
  Kbd,
  Menu,
  SegmentedControl,
  Text,
  TextInput,
  Tooltip,
  useMantineColorScheme,
} from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { call } from '../api/call.ts'
import { useSession } from '../kit/role.tsx'
import type { Zone } from '../time/format.ts'
import { useTime } from '../time/time.tsx'
import { LiveSign } from './live-sign.tsx'

/** Of the search field, which `/` leads to. */
export const SEARCH_ID = 'search'

export interface TopBarProps {
  readonly isRailOpen: boolean
  readonly toggleRail: () => void
  readonly openPalette: () => void
  readonly openKeys: () => void
}

export function TopBar({ isRailOpen, toggleRail, openPalette, openKeys }: TopBarProps) {
  const { environment } = useSession()
  return (
    <Group h="100%" px="md" justify="space-between" wrap="nowrap">
      <Group gap="sm" wrap="nowrap">
        <Burger
          hiddenFrom="sm"
          size="sm"
          opened={isRailOpen}
          onClick={toggleRail}
          aria-label={isRailOpen ? 'Close the list of screens' : 'Open the list of screens'}
        />
        <Text fw={700}>Bartleby</Text>
        <Badge
          variant="filled"
          color={environment.colour}
          autoContrast
          className="environment"
          aria-label={`Environment ${environment.name}`}
        >
          {environment.name}
        </Badge>
      </Group>
      <Search />
      <Group gap="xs" wrap="nowrap">
        <Button
          size="compact-sm"
          variant="default"
          onClick={openPalette}
          visibleFrom="md"
          aria-label="Command palette"
        >
          <Kbd size="xs">Ctrl K</Kbd>
        </Button>
        <LiveSign />
        <ThemeButton />
        <Tooltip label="Keys (?)">
          <ActionIcon variant="default" aria-label="Keys" onClick={openKeys}>
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
  const search = (event: FormEvent) => {
    event.preventDefault()
    void navigate({ to: '/letters', search: { query: text } })
  }
  return (
    <search className="search">
      <form onSubmit={search}>
        <TextInput
          id={SEARCH_ID}
          size="sm"
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

function ThemeButton() {
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const next = { auto: 'light', light: 'dark', dark: 'auto' } as const
  const signs = { auto: '◐', light: '☀', dark: '☾' } as const
  const label = `Theme: ${colorScheme}. Change to ${next[colorScheme]}.`
  return (
    <Tooltip label={label}>
      <ActionIcon variant="default" aria-label={label} onClick={() => setColorScheme(next[colorScheme])}>
        <span aria-hidden>{signs[colorScheme]}</span>
      </ActionIcon>
    </Tooltip>
  )
}

function UserMenu() {
  const { name, role, needsToken, version } = useSession()
  const { zone, setZone } = useTime()
  const client = useQueryClient()
  const signOut = async () => {
    await call('DELETE', '/api/session')
    client.clear()
    window.location.assign('/')
  }
  return (
    <Menu position="bottom-end" closeOnItemClick={false}>
      <Menu.Target>
        <Button size="compact-sm" variant="default">
          {name ?? 'nobody'}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {name} · {role} · version {version}
        </Menu.Label>
        <Group px="sm" py={4}>
          <SegmentedControl
            size="xs"
            aria-label="Times in"
            data={[
              { value: 'utc', label: 'UTC' },
              { value: 'local', label: 'Local time' },
            ]}
            value={zone}
            onChange={(chosen) => setZone(chosen as Zone)}
          />
        </Group>
        <Menu.Item component="a" href="/docs">
          API documentation
        </Menu.Item>
        {needsToken && <Menu.Item onClick={() => void signOut()}>Sign out</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  )
}
