/**
 * Screens whose scripts come when they are first needed, or some seconds after the console was opened: a server that goes away, or is
 * replaced by another version, must not take the console along. A script that does not come is told in the place of its screen; the
 * page is never loaded anew by itself, which would drop what is being typed.
 */
import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import type { ErrorComponentProps } from '@tanstack/react-router'
import { type ComponentType, use } from 'react'
import { reasonOf } from '../api/call.ts'
import { Page } from '../kit/page.tsx'

/** A screen that the router can load before it is shown. */
export type LazyScreen = (() => React.ReactNode) & { readonly preload: () => Promise<void> }

class ScreenNotLoaded extends Error {
  override readonly name = 'ScreenNotLoaded'
  readonly again: () => Promise<void>

  constructor(again: () => Promise<void>) {
    super('The script of this screen could not be loaded: the server does not answer, or was upgraded.')
    this.again = again
  }
}

const all: LazyScreen[] = []

export function lazyScreen(load: () => Promise<ComponentType>): LazyScreen {
  let Loaded: ComponentType | null = null
  let failure: ScreenNotLoaded | null = null
  let loading: Promise<void> | null = null
  /** Never rejects: what went wrong is thrown where the screen would be. */
  const preload = (): Promise<void> => {
    if (Loaded !== null) return Promise.resolve()
    loading ??= load().then(
      (screen) => {
        Loaded = screen
        failure = null
      },
      () => {
        loading = null
        failure = new ScreenNotLoaded(preload)
      },
    )
    return loading
  }
  const Screen = () => {
    if (Loaded === null) {
      if (failure !== null) throw failure
      use(preload())
    }
    return Loaded === null ? null : <Loaded />
  }
  const screen = Object.assign(Screen, { preload })
  all.push(screen)
  return screen
}

/** Loads what was not needed yet, one after the other, with the parts of screens that come by themselves. Never rejects. */
export async function loadAllScreens(): Promise<void> {
  for (const { preload } of all) await preload()
  await Promise.all([import('../kit/activity-plot.tsx'), import('diff')]).catch(() => {})
}

/** In the place of a screen that did not come, or broke. */
export function BrokenScreen({ error, reset }: ErrorComponentProps) {
  const again = async () => {
    if (error instanceof ScreenNotLoaded) await error.again()
    reset()
  }
  return (
    <Page title="This screen cannot be shown">
      <Alert color="red" title="Other screens work" role="alert">
        <Stack gap="xs" align="flex-start">
          <Text size="sm" className="wrapped">
            {reasonOf(error)}
          </Text>
          <Group gap="xs">
            <Button size="compact-sm" variant="default" onClick={() => void again()}>
              Try again
            </Button>
            <Button size="compact-sm" variant="default" onClick={() => window.location.reload()}>
              Reload the page
            </Button>
          </Group>
        </Stack>
      </Alert>
    </Page>
  )
}
