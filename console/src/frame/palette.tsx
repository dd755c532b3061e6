/** The command palette (Ctrl K or ⌘ K): screens, causes, queues, consumers, services, letters and switches, found by typing. */
import { Combobox, Modal, ScrollArea, TextInput, useCombobox, useMantineColorScheme } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { queuesQuery, signaturesQuery } from '../api/queries.ts'
import { queryOf } from '../kit/links.tsx'
import { useSession } from '../kit/role.tsx'
import { visible } from '../kit/visible.ts'
import { useLive } from '../live/live.tsx'
import { nameOf } from '../signatures/group.ts'
import { kafkaQuery } from '../sources/kafka-queries.ts'
import { consumersQuery, deadLettersOf } from '../sources/webhook-queries.ts'
import { useTime } from '../time/time.tsx'
import { SCREENS } from './screens.ts'

/** More than these are not read through, but narrowed by typing. */
const MOST_SHOWN = 30

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
  const commands = useCommands(openKeys)
  const places = usePlaces(wanted !== '')
  const navigate = useNavigate()
  const search: Command = {
    title: `Search letters for ${text.trim()}`,
    run: () => void navigate({ to: '/letters', search: { query: text.trim() } }),
  }
  const named = [...commands, ...places].filter(({ title }) => title.toLowerCase().includes(wanted))
  const found = [...named.slice(0, MOST_SHOWN), ...(wanted === '' ? [] : [search])]
  const { selectFirstOption } = combobox
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is typed changes the options, the first is chosen anew
  useEffect(() => {
    selectFirstOption()
  }, [text, found.length, selectFirstOption])
  const choose = (place: string) => {
    close()
    found[Number(place)]?.run()
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
          // The list is always open, so its own Escape has nothing to close and would keep the key to itself.
          onKeyDown={(event) => {
            if (event.key === 'Escape') close()
          }}
        />
      </Combobox.EventsTarget>
      <ScrollArea.Autosize mah="50vh" mt="sm">
        <Combobox.Options aria-label="Commands">
          {found.map(({ title }, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two causes may have the same name
            <Combobox.Option key={place} value={String(place)}>
              {title}
            </Combobox.Option>
          ))}
        </Combobox.Options>
      </ScrollArea.Autosize>
    </Combobox>
  )
}

function useCommands(openKeys: () => void): readonly Command[] {
  const navigate = useNavigate()
  const { setColorScheme } = useMantineColorScheme()
  const { zone, setZone } = useTime()
  const { isPaused, setPaused } = useLive()
  return [
    ...SCREENS.map(({ to, title }) => ({ title: `Go to ${title}`, run: () => void navigate({ to }) })),
    { title: 'Theme: light', run: () => setColorScheme('light') },
    { title: 'Theme: dark', run: () => setColorScheme('dark') },
    { title: 'Theme: system', run: () => setColorScheme('auto') },
    zone === 'utc'
      ? { title: 'Times in local time', run: () => setZone('local') }
      : { title: 'Times in UTC', run: () => setZone('utc') },
    { title: isPaused ? 'Resume live updates' : 'Pause live updates', run: () => setPaused(!isPaused) },
    { title: 'List keyboard shortcuts', run: openKeys },
  ]
}

/** What the office has under a name. Read when something is typed: opening the palette asks for nothing. */
function usePlaces(isWanted: boolean): readonly Command[] {
  const navigate = useNavigate()
  const { sources } = useSession()
  const groups = useInfiniteQuery({ ...signaturesQuery(), enabled: isWanted }).data?.pages[0]?.items ?? []
  const queues = useQuery({ ...queuesQuery(), enabled: isWanted }).data?.items ?? []
  const consumers =
    useInfiniteQuery({ ...consumersQuery, enabled: isWanted && sources.webhooks === true }).data?.pages[0]
      ?.items ?? []
  const kafka = useQuery({ ...kafkaQuery, enabled: isWanted && sources.kafka === true }).data
  const services = kafka?.enabled === true ? kafka.services : []
  return [
    ...groups.map((group) => ({
      title: `Cause: ${nameOf(group)}`,
      run: () => void navigate({ to: '/signatures/$signature', params: { signature: group.signature } }),
    })),
    ...queues.map(({ name }) => ({
      title: `Queue: ${visible(name)}`,
      run: () => void navigate({ to: '/sources/queues', search: { queue: name } }),
    })),
    ...consumers.map((consumer) => ({
      title: `Consumer: ${visible(consumer.channelName)} → ${visible(consumer.consumerName)}`,
      run: () => void navigate({ to: '/letters', search: { query: queryOf(deadLettersOf(consumer)) } }),
    })),
    ...services.map(({ name }) => ({
      title: `Service: ${visible(name)}`,
      run: () => void navigate({ to: '/sources/kafka', search: { service: name } }),
    })),
  ]
}
