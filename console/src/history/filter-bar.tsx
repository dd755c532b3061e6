/** The filters of history. Lists apply at once, texts with Enter or the button; all of them are part of the address. */
import { Autocomplete, Button, Group, NativeSelect, SimpleGrid, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type FormEvent, useEffect, useState } from 'react'
import { enginesQuery } from '../api/queries.ts'
import { useTime } from '../time/time.tsx'
import { filterIn, type HistoryAsked, type HistoryFilterName } from './history-filter.ts'
import { inputOf, instantOf } from './moment-input.ts'

export interface FilterBarProps {
  readonly filter: HistoryAsked
  apply(filter: HistoryAsked): void
}

const STATUSES = [
  { value: '', label: 'any' },
  { value: 'Succeeded', label: 'Succeeded' },
  { value: 'Failed', label: 'Failed' },
]

export function FilterBar({ filter, apply }: FilterBarProps) {
  const { zone } = useTime()
  const { data } = useQuery(enginesQuery)
  const [draft, setDraft] = useState(filter)
  const applied = JSON.stringify(filter)
  useEffect(() => setDraft(JSON.parse(applied) as HistoryAsked), [applied])

  const changed = (name: HistoryFilterName, value: string): HistoryAsked => ({ ...draft, [name]: value })
  const type = (name: HistoryFilterName) => (value: string) => setDraft(changed(name, value))
  const submit = (event: FormEvent) => {
    event.preventDefault()
    apply(filterIn(draft))
  }
  const engines = data?.items ?? []
  const operations = engines
    .filter(({ name }) => !draft.engine || name === draft.engine)
    .flatMap((engine) => engine.operations.map(({ operation }) => operation))
  const zoneName = zone === 'utc' ? 'UTC' : 'local time'
  return (
    <form onSubmit={submit} aria-label="Filters of history">
      <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }} spacing="sm" verticalSpacing="xs">
        <Autocomplete
          size="xs"
          label="Engine"
          data={engines.map(({ name }) => name)}
          value={draft.engine ?? ''}
          onChange={type('engine')}
          onOptionSubmit={(value) => apply(filterIn(changed('engine', value)))}
        />
        <Autocomplete
          size="xs"
          label="Operation"
          data={[...new Set(operations)].sort()}
          value={draft.operation ?? ''}
          onChange={type('operation')}
          onOptionSubmit={(value) => apply(filterIn(changed('operation', value)))}
        />
        <NativeSelect
          size="xs"
          label="Status"
          data={STATUSES}
          value={draft.status ?? ''}
          onChange={(event) => apply(filterIn(changed('status', event.currentTarget.value)))}
        />
        <TextInput
          size="xs"
          label="Subject (instance)"
          value={draft.instanceId ?? ''}
          onChange={(event) => type('instanceId')(event.currentTarget.value)}
        />
        <TextInput
          size="xs"
          label="Correlation"
          value={draft.correlationId ?? ''}
          onChange={(event) => type('correlationId')(event.currentTarget.value)}
        />
        {(['fromDate', 'toDate'] as const).map((name) => (
          <TextInput
            key={name}
            size="xs"
            type="datetime-local"
            step={1}
            label={`${name === 'fromDate' ? 'From' : 'Before'} (${zoneName})`}
            value={inputOf(draft[name], zone)}
            onChange={(event) => type(name)(instantOf(event.currentTarget.value, zone) ?? '')}
          />
        ))}
        <Group gap="xs" align="flex-end">
          <Button size="xs" type="submit">
            Apply
          </Button>
          <Button
            size="xs"
            variant="default"
            disabled={Object.keys(filter).length === 0 && applied === JSON.stringify(filterIn(draft))}
            onClick={() => {
              setDraft({})
              apply({})
            }}
          >
            Clear all filters
          </Button>
        </Group>
      </SimpleGrid>
    </form>
  )
}
