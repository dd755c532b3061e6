/** The frame around every screen: rail, top bar, the screen itself, and what belongs to the whole office. */
import { AppShell } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Outlet, useNavigate } from '@tanstack/react-router'
import { RunTray } from '../acts/run-tray.tsx'
import { RunsProvider } from '../acts/runs.tsx'
import { useKeys } from '../keys/keys.tsx'
import { LiveProvider } from '../live/live.tsx'
import { DemoBanner } from './demo-banner.tsx'
import { KeyList } from './key-list.tsx'
import { Palette } from './palette.tsx'
import { Rail } from './rail.tsx'
import { SCREENS } from './screens.ts'
import { SEARCH_ID, TopBar } from './top-bar.tsx'

export function Frame() {
  const [isRailOpen, rail] = useDisclosure(false)
  const [isPaletteOpen, palette] = useDisclosure(false)
  const [isKeyListOpen, keyList] = useDisclosure(false)
  const navigate = useNavigate()
  useKeys('Everywhere', [
    { keys: '/', does: 'search letters', run: () => document.getElementById(SEARCH_ID)?.focus() },
    { keys: '?', does: 'list all keys', run: keyList.open },
    ...SCREENS.map(({ to, title, key }) => ({
      keys: `g ${key}`,
      does: `go to ${title}`,
      run: () => void navigate({ to }),
    })),
  ])
  return (
    <LiveProvider>
      <RunsProvider>
        <a className="skip" href="#screen">
          Skip to the screen
        </a>
        <AppShell
          header={{ height: 56 }}
          navbar={{ width: 200, breakpoint: 'sm', collapsed: { mobile: !isRailOpen } }}
          padding="md"
        >
          <AppShell.Header>
            <TopBar
              isRailOpen={isRailOpen}
              toggleRail={rail.toggle}
              openPalette={palette.open}
              openKeys={keyList.open}
            />
          </AppShell.Header>
          <AppShell.Navbar>
            <Rail close={rail.close} />
          </AppShell.Navbar>
          <AppShell.Main id="screen" tabIndex={-1}>
            <DemoBanner />
            <Outlet />
          </AppShell.Main>
        </AppShell>
        <RunTray />
        <Palette isOpen={isPaletteOpen} open={palette.open} close={palette.close} />
        <KeyList isOpen={isKeyListOpen} close={keyList.close} />
      </RunsProvider>
    </LiveProvider>
  )
}
