/** The command palette (Ctrl K or ⌘ K): screens, switches and letters, found by typing. */
import { Combobox, Modal, ScrollArea, TextInput, useCombobox, useMantineColorScheme } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useLive } from '../live/live.tsx'
import { useTime } from '../time/time.tsx'
import { SCREENS } from './screens.ts'

interface Command {
  readonly title: string
  run(): void
}

export interface PaletteProps {
  readonly isOpen: boolean
  readonly close: () => void
  readonly openKeys: () => void
}

export function Palette({ isOpen, close, openKeys }: PaletteProps) {
  return (
    <Modal
      opened={isOpen}
      onClose={close}
      title="Command palette"
      closeButtonProps={{ 'aria-label': 'Close' }}
      yOffset="12vh"
    >
      {isOpen && <Commands close={close} openKeys={openKeys} />}
    </Modal>
  )
}

function Commands({ close, openKeys }: Pick<PaletteProps, 'close' | 'openKeys'>) {
  const [text, setText] = useState('')
  const combobox = useCombobox({ opened: true })
  const wanted = text.trim().toLowerCase()
  const found = useCommands(text.trim(), openKeys).filter(({ title }) => title.toLowerCase().includes(wanted))
  const { selectFirstOption } = combobox
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is typed changes the options, the first is chosen anew
  useEffect(() => {
    selectFirstOption()
  }, [text, selectFirstOption])
  const choose = (title: string) => {
    close()
    found.find((command) => command.title === title)?.run()
  }
  return (
    <Combobox store={combobox} onOptionSubmit={choose} withinPortal={false}>
      <Combobox.EventsTarget withExpandedAttribute>
        <TextInput
          data-autofocus
          role="combobox"
          aria-label="Command"
          placeholder="Go to, switch, search…"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
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

function useCommands(text: string, openKeys: () => void): readonly Command[] {
  const navigate = useNavigate()
  const { setColorScheme } = useMantineColorScheme()
  const { zone, setZone } = useTime()
  const { isPaused, setPaused } = useLive()
  return [
    ...SCREENS.map(({ to, title }) => ({ title: `Go to ${title}`, run: () => void navigate({ to }) })),
    { title: 'Theme: light', run: () => setColorScheme('light') },
    { title: 'Theme: dark', run: () => setColorScheme('dark') },
    { title: 'Theme: as the system', run: () => setColorScheme('auto') },
    zone === 'utc'
      ? { title: 'Times in local time', run: () => setZone('local') }
      : { title: 'Times in UTC', run: () => setZone('utc') },
    { title: isPaused ? 'Go on with live updates' : 'Pause live updates', run: () => setPaused(!isPaused) },
    { title: 'List all keys', run: openKeys },
    ...(text === ''
      ? []
      : [
          {
            title: `Search letters for ${text}`,
            run: () => void navigate({ to: '/letters', search: { query: text } }),
          },
        ]),
  ]
}
