/** Which groups: by source, engine and queue. The choices are what there are letters of. */
import { Select, SimpleGrid } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { countsQuery } from '../api/queries.ts'
import type { LetterCounts, LetterFilter } from '../api/types.ts'

const KEYS = [
  { key: 'source', label: 'Source', all: 'all sources' },
  { key: 'engine', label: 'Engine', all: 'all engines' },
  { key: 'originalQueue', label: 'Queue', all: 'all queues' },
] as const
type Key = (typeof KEYS)[number]['key']

/** More are found by typing. */
const MOST_CHOICES = 100

export function Filters({
  filter,
  change,
}: {
  readonly filter: LetterFilter
  readonly change: (filter: LetterFilter) => void
}) {
  const counts = useQuery(countsQuery(KEYS.map(({ key }) => key).join(',')))
  return (
    <SimpleGrid cols={3} spacing="sm" maw="40rem">
      {KEYS.map(({ key, label, all }) => (
        <Select
          key={key}
          size="xs"
          label={label}
          placeholder={all}
          data={choicesOf(counts.data, key, filter[key])}
          limit={MOST_CHOICES}
          searchable
          clearable
          clearButtonProps={{ 'aria-label': `Show ${all}` }}
          value={filter[key] ?? null}
          onChange={(chosen) => {
            const { [key]: _, ...others } = filter
            change(chosen === null ? others : { ...others, [key]: chosen })
          }}
        />
      ))}
    </SimpleGrid>
  )
}

/** What letters have, and what the address asks for, be there letters of it or not. */
function choicesOf(counts: LetterCounts | undefined, key: Key, chosen: string | undefined): string[] {
  const found = counts?.items.flatMap((count) => count[key] ?? []) ?? []
  return [...new Set(chosen === undefined ? found : [...found, chosen])].sort()
}
