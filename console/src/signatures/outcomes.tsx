/** What came of the retries of a group: a bar whose parts add up, and the same in words. */
import { Text } from '@mantine/core'
import type { ReactNode } from 'react'
import type { Outcomes, SignatureGroup } from '../api/types.ts'
import { Count, QueryLink } from '../kit/links.tsx'
import { Panel } from '../kit/page.tsx'
import { grouped } from '../time/format.ts'

const PARTS = ['confirmed', 'returned', 'unconfirmed'] as const
type Part = (typeof PARTS)[number]

const MEANINGS: Readonly<Record<Part, string>> = {
  confirmed: 'processed',
  returned: 'failed again',
  unconfirmed: 'outcome not known yet',
}

export function OutcomePanel({ group: { signature, outcomes } }: { readonly group: SignatureGroup }) {
  return (
    <Panel title="Outcomes of retries">
      {outcomes === undefined || outcomes.retried === 0 ? (
        <Text size="sm">None of these letters has been retried yet. Try one before you retry all.</Text>
      ) : (
        <OutcomeBar signature={signature} outcomes={outcomes} />
      )}
    </Panel>
  )
}

function OutcomeBar({ signature, outcomes }: { readonly signature: string; readonly outcomes: Outcomes }) {
  const all = PARTS.reduce((sum, part) => sum + outcomes[part], 0)
  return (
    <>
      <Text size="sm">
        <strong className="numbers">{grouped(outcomes.retried)}</strong>{' '}
        {outcomes.retried === 1 ? 'retry' : 'retries'} so far
        {all > 0 && <Verdict outcomes={outcomes} />}
      </Text>
      <div className="outcome-bar" aria-hidden>
        {PARTS.filter((part) => outcomes[part] > 0).map((part) => (
          <OutcomePart key={part} part={part} share={outcomes[part] / all} />
        ))}
      </div>
      <ul className="outcomes">
        {PARTS.map((part) => (
          <li key={part}>
            <span className="outcome-sign" data-part={part} aria-hidden />
            <strong className="numbers">{linkOf(part, signature, outcomes[part])}</strong> {part}
            <Text span size="xs" c="var(--quiet)">
              {' '}
              {all > 0 && `${percent(outcomes[part] / all)}, `}
              {MEANINGS[part]}
            </Text>
          </li>
        ))}
      </ul>
    </>
  )
}

function OutcomePart({ part, share }: { readonly part: Part; readonly share: number }) {
  return <div className="outcome-part" data-part={part} style={{ flexGrow: share }} />
}

function Verdict({ outcomes: { confirmed, returned } }: { readonly outcomes: Outcomes }) {
  if (confirmed + returned === 0) return null
  const share = confirmed / (confirmed + returned)
  return <>: of those whose outcome is known, {percent(share)} were confirmed.</>
}

function linkOf(part: Part, signature: string, count: number): ReactNode {
  if (part === 'returned') {
    return (
      <QueryLink
        query={`status:pending signature:${signature} attempts:>=2`}
        label={`${grouped(count)} returned: pending letters of this signature that failed more than once`}
      >
        {grouped(count)}
      </QueryLink>
    )
  }
  return <Count of={count} filter={{ signature, outcome: part }} label={part} />
}

/** Never 0 % or 100 % of something that is not none or all. */
const percent = (share: number): string => {
  const rounded = Math.round(share * 100)
  if (rounded === 0 && share > 0) return '< 1 %'
  if (rounded === 100 && share < 1) return '> 99 %'
  return `${rounded} %`
}
