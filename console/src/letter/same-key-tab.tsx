/** Other letters that belong together with this one: of the same instance or key, and of the same correlation. */
import { Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { nameOf } from '../acts/letter-name.ts'
import { letterPageQuery } from '../api/queries.ts'
import type { LetterDetail, LetterFilter } from '../api/types.ts'
import { LettersLink } from '../kit/links.tsx'
import { Shown } from '../kit/page.tsx'
import { Table } from '../kit/table.tsx'
import { LETTER_COLUMNS } from '../letters/letter-columns.tsx'

const SHOWN = 20

export function SameKeyTab({ letter }: { readonly letter: LetterDetail }) {
  const { instanceId, correlationId } = letter
  return (
    <Stack gap="lg">
      <Related letter={letter} title={`Instance or key ${instanceId}`} filter={{ instanceId }} />
      {correlationId !== instanceId && (
        <Related letter={letter} title={`Correlation id ${correlationId}`} filter={{ correlationId }} />
      )}
    </Stack>
  )
}

interface RelatedProps {
  readonly letter: LetterDetail
  readonly title: string
  readonly filter: LetterFilter
}

function Related({ letter, title, filter }: RelatedProps) {
  const read = useQuery(letterPageQuery(filter, null, SHOWN))
  return (
    <section aria-label={title}>
      <Title order={2} size="h5" mb={4} className="wrapped">
        {title}
      </Title>
      <Shown read={read} what="letters">
        {({ items, continuationToken }) => {
          const others = items.filter((item) => nameOf(item) !== nameOf(letter))
          if (others.length === 0) return <Text size="sm">No other letters.</Text>
          return (
            <Stack gap="xs">
              <Table label={title} columns={LETTER_COLUMNS} rows={others} keyOf={nameOf} />
              <Text size="sm">
                <LettersLink filter={filter}>
                  {continuationToken === null ? 'Show as a list' : 'Show all (these are the newest)'}
                </LettersLink>
              </Text>
            </Stack>
          )
        }}
      </Shown>
    </section>
  )
}
