/** The command palette (Ctrl K or ⌘ K): screens, switches and letters, found by typing. */
import { Combobox, Modal, ScrollArea, TextInput, useCombobox, useMantineColorScheme } from '@mantine/core'
import { useHotkeys } from '@mantine/hooks'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { useLive } from '../live/live.tsx'
import { useTime } from '../time/time.tsx'
import { SCREENS } from './screens.ts'

interface Command {
  readonly title: string
  run(): void
}

export interface PaletteProps {
  readonly isOpen: boolean
  readonly open: () => void
  readonly close: () => void
}

export function Palette({ isOpen, open, close }: PaletteProps) {
  useHotkeys([['mod+K', open]], [])
  return (
    <Modal
      opened={isOpen}
      onClose={close}
      title="Commands"
      withCloseButton={false}
      aria-label="Command palette"
      yOffset="12vh"
    >
      {isOpen && <Commands close={close} />}
    </Modal>
  )
}

function Commands({ close }: { readonly close: () => void }) {
  const [text, setText] = useState('')
  const combobox = useCombobox({ opened: true })
  const commands = useCommands(text)
  const wanted = text.trim().toLowerCase()
  const found = commands.filter(({ title }) => title.toLowerCase().includes(wanted))
  const choose = (title: string) => {
    close()
    found.find((command) => command.title === title)?.run()
  }
  return (
    <Combobox store={combobox} onOptionSubmit={choose} withinPortal={false}>
      <Combobox.EventsTarget>
        <TextInput
          data-autofocus
          aria-label="Command"
          placeholder="Go to, switch, search…"
          value={text}
          onChange={(event) => {
            setText(event.currentTarget.value)
            combobox.selectFirstOption()
          }}
        />
      </Combobox.EventsTarget>
      <ScrollArea.Autosize mah="50vh" mt="sm">
        <Combobox.Options aria-label="Commands">
          {found.map(({ title }) => (
            <Combobox.Option key={title} value={title}>
              {title}
            </Combobox.Option>
          ))}
        </Combobox.Options>
      </ScrollArea.Autosize>
    </Combobox>
  )
}

function useCommands(text: string): readonly Command[] {
  const navigate = useNavigate()
  const { setColorScheme } = useMantineColorScheme()
  const { zone, setZone } = useTime()
  const { isPaused, setPaused } = useLive()
  const wanted = text.trim()
  return [
    ...SCREENS.map(({ to, title }) => ({ title: `Go to ${title}`, run: () => void navigate({ to }) })),
    { title: 'Theme: light', run: () => setColorScheme('light') },
    { title: 'Theme: dark', run: () => setColorScheme('dark') },
    { title: 'Theme: as the system', run: () => setColorScheme('auto') },
    zone === 'utc'
      ? { title: 'Times in local time', run: () => setZone('local') }
      : { title: 'Times in UTC', run: () => setZone('utc') },
    { title: isPaused ? 'Go on with live updates' : 'Pause live updates', run: () => setPaused(!isPaused) },
    ...(wanted === ''
      ? []
      : [
          {
            title: `Search letters for ${wanted}`,
            run: () => void navigate({ to: '/letters', search: { query: wanted } }),
          },
        ]),
  ]
}
