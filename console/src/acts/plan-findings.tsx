/** What a plan found: the sentence, the numbers that add up, where letters go, and the first of them. */
import { Alert, Anchor, Group, Loader, Stack, Text } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { isSending, type RedriveDestination, type RedriveDetail } from '../api/redrive-types.ts'
import { Count } from '../kit/links.tsx'
import { visible } from '../kit/visible.ts'
import { grouped } from '../time/format.ts'
import { Time, useTime } from '../time/time.tsx'
import { filterFor, MEANINGS, VERBS } from './act.ts'
import type { PlanRequest } from './plan-context.ts'
import { PlanSample } from './plan-sample.tsx'
import { exceptionsIn, FOUND_WORDS } from './plan-words.ts'
import type { PlanCalls } from './use-plan-calls.ts'

export interface PlanFindingsProps {
  readonly request: PlanRequest
  readonly calls: PlanCalls
  /** Nothing is missing for a plan. */
  readonly isAskable: boolean
}

export function PlanFindings({ request, calls, isAskable }: PlanFindingsProps) {
  const { act, what } = request
  const { plan, isPlanning, isOld, hasMoved } = calls
  return (
    <div>
      {plan === null ? (
        <>
          <Text fw={600} className="plan-sentence">
            {VERBS[act]} {what}
          </Text>
          <Text size="sm">{MEANINGS[act]}</Text>
        </>
      ) : (
        <Stack gap="sm" className={isOld ? 'plan-old' : undefined}>
          <Found request={request} plan={plan} />
        </Stack>
      )}
      {isPlanning && (
        <Group gap="xs" mt="xs" role="status">
          <Loader size="xs" />
          <Text size="sm">
            {calls.progress ?? 'Planning changes nothing. A million letters take half a minute.'}
          </Text>
        </Group>
      )}
      {!isPlanning && plan === null && !isAskable && (
        <Text size="sm" mt="xs">
          {act === 'move' ? 'Name the queue, then plan.' : 'Give a reason, then plan.'} Nothing happens before
          you have seen how many they are.
        </Text>
      )}
      {isOld && !isPlanning && (
        <Alert color="yellow" role="status" mt="xs" title="The terms have changed since this plan">
          Plan again to see the numbers.
        </Alert>
      )}
      {hasMoved && !isOld && (
        <Alert color="yellow" role="status" mt="xs" title="The numbers have changed">
          Planning again found other numbers. Nothing was started: check them, then start.
        </Alert>
      )}
    </div>
  )
}

function Found({ request, plan }: { readonly request: PlanRequest; readonly plan: RedriveDetail }) {
  const { act } = request
  const { numbers } = plan
  return (
    <>
      <div>
        <Text fw={600} className="plan-sentence">
          {visible(plan.sentence)}
        </Text>
        {numbers.eligible > 0 && <Text size="sm">{MEANINGS[act]}</Text>}
      </div>
      <Numbers request={request} plan={plan} />
      {isSending(act) && <Destinations destinations={plan.destinations} />}
      {plan.sample.length > 0 && <PlanSample key={plan.id} plan={plan} />}
      {numbers.eligible > 0 && <Validity until={plan.validUntilUtc} />}
    </>
  )
}

function Validity({ until }: { readonly until: string }) {
  const { now } = useTime()
  return (
    <Text size="sm" c="var(--quiet)">
      The plan holds these letters as they are now. Later arrivals are not part of it; letters that change are
      skipped.{' '}
      {new Date(until).getTime() > now ? (
        <>
          The plan can be started until it expires, <Time at={until} />.
        </>
      ) : (
        'The plan has expired. Starting it plans again first, and starts only if the numbers are the same.'
      )}
    </Text>
  )
}

function Numbers({ request, plan }: { readonly request: PlanRequest; readonly plan: RedriveDetail }) {
  const { act, filter, keys } = request
  const { id, numbers } = plan
  const exceptions = exceptionsIn(numbers)
  const matched = grouped(numbers.matched)
  return (
    <div>
      <Text size="sm" className="numbers prose">
        {keys === undefined ? (
          <Count of={numbers.matched} filter={filterFor(act, filter)} label="letters match" />
        ) : (
          matched
        )}{' '}
        {keys !== undefined ? 'chosen' : numbers.matched === 1 ? 'matches' : 'match'} ={' '}
        {numbers.eligible === 0 ? (
          '0 in the plan'
        ) : (
          <Anchor inherit renderRoot={(props) => <Link to="/redrives/$id" params={{ id }} {...props} />}>
            {grouped(numbers.eligible)} in the plan
          </Anchor>
        )}
        {exceptions.map(([name, count]) => ` + ${grouped(count)} ${FOUND_WORDS[name].short}`).join('')}
      </Text>
      {exceptions.length > 0 && (
        <ul className="plan-exceptions">
          {exceptions.map(([name, count]) => (
            <li key={name}>
              <strong className="numbers">{grouped(count)}</strong> {FOUND_WORDS[name].short}:{' '}
              {FOUND_WORDS[name].means}
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

const MOST_DESTINATIONS = 5

function Destinations({ destinations }: { readonly destinations: readonly RedriveDestination[] }) {
  const shown = destinations.slice(0, MOST_DESTINATIONS)
  const others = destinations.length - shown.length
  if (shown.length < 2) return null
  return (
    <Text size="sm" className="numbers prose">
      To{' '}
      {shown
        .map(({ source, name, planned }) => `${name === '' ? source : visible(name)} ${grouped(planned)}`)
        .join(', ')}
      {others > 0 && `, and ${grouped(others)} ${others === 1 ? 'other' : 'others'}`}.
    </Text>
  )
}
