/** The frame around every screen: rail, top bar, the screen itself, and what belongs to the whole office. */
import { AppShell } from '@mantine/core'
import { useDisclosure, useHotkeys } from '@mantine/hooks'
import { Outlet, useLocation, useNavigate } from '@tanstack/react-router'
import { lazy, Suspense, useEffect, useRef } from 'react'
import { PlanProvider } from '../acts/plan-provider.tsx'
import { useKeys } from '../keys/keys.tsx'
import { LiveProvider } from '../live/live.tsx'
import { RedriveLine } from '../redrives/redrive-line.tsx'
import { DemoBanner } from './demo-banner.tsx'
import { GoneBanner } from './gone-banner.tsx'
import { loadAllScreens } from './lazy-screen.tsx'
import { Rail } from './rail.tsx'
import { SCREEN_ID, SCREENS } from './screens.ts'
import { SEARCH_ID, TopBar } from './top-bar.tsx'

// Not part of the first script: they come once the page is there.
const Palette = lazy(async () => ({ default: (await import('./palette.tsx')).Palette }))
const KeyList = lazy(async () => ({ default: (await import('./key-list.tsx')).KeyList }))

export function Frame() {
  const [isRailOpen, rail] = useDisclosure(false)
  const [isPaletteOpen, palette] = useDisclosure(false)
  const [isKeyListOpen, keyList] = useDisclosure(false)
  const navigate = useNavigate()
  useFocusOnScreen()
  useAllScreens()
  useHotkeys([['mod+K', palette.open]], [])
  useKeys('Everywhere', [
    {
      keys: '/',
      does: 'search letters',
      run: () => {
        const field = document.getElementById(SEARCH_ID)
        // On narrow screens the field is not there.
        if (field?.checkVisibility() === true) field.focus()
        else palette.open()
      },
    },
    { keys: '?', does: 'list keyboard shortcuts', run: keyList.open },
    ...SCREENS.map(({ to, title, key }) => ({
      keys: `g ${key}`,
      does: `go to ${title}`,
      run: () => void navigate({ to }),
    })),
  ])
  return (
    <LiveProvider>
      <PlanProvider>
        <a className="skip" href={`#${SCREEN_ID}`}>
          Skip to the screen
        </a>
        <AppShell
          header={{ height: 48 }}
          navbar={{ width: 196, breakpoint: 'sm', collapsed: { mobile: !isRailOpen } }}
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
          <AppShell.Main id={SCREEN_ID} className="screen" tabIndex={-1}>
            <GoneBanner />
            <DemoBanner />
            <Outlet />
          </AppShell.Main>
        </AppShell>
        <RedriveLine />
        <Suspense>
          <Palette isOpen={isPaletteOpen} close={palette.close} openKeys={keyList.open} />
          <KeyList isOpen={isKeyListOpen} close={keyList.close} />
        </Suspense>
      </PlanProvider>
    </LiveProvider>
  )
}

/** Another screen takes the focus, so that keyboards and screen readers begin where it begins. */
function useFocusOnScreen(): void {
  const { pathname } = useLocation()
  const before = useRef(pathname)
  useEffect(() => {
    if (before.current === pathname) return
    before.current = pathname
    document.getElementById(SCREEN_ID)?.focus({ preventScroll: true })
  }, [pathname])
}

/** When the first screen has long been there: nothing waits for these. */
const ALL_SCREENS_MS = 5_000

function useAllScreens(): void {
  useEffect(() => {
    const timer = setTimeout(() => void loadAllScreens(), ALL_SCREENS_MS)
    return () => clearTimeout(timer)
  }, [])
}
