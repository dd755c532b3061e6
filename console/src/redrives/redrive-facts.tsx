/** What was planned: which letters, how they go, who said so, and what is changed in them. */
import { Text } from '@mantine/core'
import { filterFor, VERBS } from '../acts/act.ts'
import { exceptionsIn, FOUND_WORDS } from '../acts/plan-words.ts'
import { filterOf, isSending, type Redrive } from '../api/redrive-types.ts'
import { HistoryLink } from '../history/history-link.tsx'
import { Fact, Facts } from '../kit/facts.tsx'
import { LettersLink, queryOf } from '../kit/links.tsx'
import { Panel } from '../kit/page.tsx'
import { visible } from '../kit/visible.ts'
import { grouped } from '../time/format.ts'
import { FullTime } from '../time/time.tsx'
import { canaryTerm, ORDER_TERMS, rateTerm, resumedWords, stopTerm } from './redrive-words.ts'

/** Terms. */
export function Terms({ redrive }: { readonly redrive: Redrive }) {
  const { action, queue, rate, canary, stopRule, order, reason, id } = redrive
  return (
    <Panel title="Terms">
      <Facts>
        <Fact name="Act">
          {VERBS[action]}
          {queue === null ? '' : ` to ${queue}`}
        </Fact>
        <Fact name="Letters">
          <Which redrive={redrive} />
        </Fact>
        <Fact name="Reason">{visible(reason ?? '')}</Fact>
        <Fact name="Rate">{rateTerm(rate)}</Fact>
        {isSending(action) && (
          <>
            <Fact name="First">{canaryTerm(canary)}</Fact>
            <Fact name="Stop rule">{stopTerm(stopRule)}</Fact>
            <Fact name="Order">{ORDER_TERMS[order]}</Fact>
          </>
        )}
        <Fact name="Id">{id}</Fact>
        <Fact name="Record">
          <HistoryLink filter={{ correlationId: id }}>History of this redrive</HistoryLink>
        </Fact>
      </Facts>
    </Panel>
  )
}

/** Which letters, as they can be asked for now. */
function Which({ redrive }: { readonly redrive: Redrive }) {
  const { action, ids } = redrive
  const filter = filterOf(redrive)
  if (filter === null) return `${grouped(ids ?? 0)} that were chosen one by one`
  const now = filterFor(action, filter)
  const query = queryOf(now)
  return (
    <LettersLink filter={now} label={`Letters that match ${query} now`}>
      {query === '' ? 'All there were' : query}
    </LettersLink>
  )
}

/** What the plan found, and when what happened. */
export function PlanFacts({ redrive }: { readonly redrive: Redrive }) {
  const { numbers, plannedBy, plannedAtUtc, validUntilUtc, startedBy, startedAtUtc, endedAtUtc, isHeld } =
    redrive
  return (
    <Panel title="The plan">
      <Text size="sm" className="numbers">
        {grouped(numbers.matched)} matched = {grouped(numbers.eligible)} in the plan
        {exceptionsIn(numbers)
          .map(([name, count]) => ` + ${grouped(count)} ${FOUND_WORDS[name].short}`)
          .join('')}
      </Text>
      <Facts>
        <Fact name="Planned">
          <FullTime at={plannedAtUtc} /> by {plannedBy}
        </Fact>
        {startedAtUtc === null ? (
          <Fact name="Valid until">
            <FullTime at={validUntilUtc} />
          </Fact>
        ) : (
          <Fact name="Started">
            <FullTime at={startedAtUtc} /> by {startedBy}
          </Fact>
        )}
        <Fact name="Ended">{endedAtUtc === null ? null : <FullTime at={endedAtUtc} />}</Fact>
        <Fact name="Restarts">{resumedWords(redrive.resumed)}</Fact>
        <Fact name="Carried out">{isHeld ? 'By a server' : null}</Fact>
      </Facts>
    </Panel>
  )
}

/** The repair, in the form in which it can be used again. */
export function Recipe({ repair }: { readonly repair: NonNullable<Redrive['repair']> }) {
  const { patch, mapping, headers, version } = repair
  return (
    <Panel title="Repair" beside={<Text size="sm">Version {version}</Text>}>
      {patch !== undefined && patch !== null && (
        <>
          <Text size="sm">JSON Patch</Text>
          <pre className="bytes framed">{JSON.stringify(patch, null, 2)}</pre>
        </>
      )}
      {mapping !== undefined && mapping !== null && (
        <>
          <Text size="sm">Mapping (JSONata)</Text>
          <pre className="bytes framed">{mapping}</pre>
        </>
      )}
      <Facts
        of={Object.fromEntries([
          ...Object.entries(headers?.set ?? {}).map(([name, value]) => [`${name} becomes`, value]),
          ...(headers?.remove ?? []).map((name) => [`${name} becomes`, 'empty']),
        ])}
      />
    </Panel>
  )
}
