/** One signature: why its letters are together, what varies in them, what came of retries, and the letters. */
import './signatures.css'
import { Group, SimpleGrid, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { usePlan } from '../acts/plan-context.ts'
import { activityQuery, letterPageQuery, signatureQuery } from '../api/queries.ts'
import type { Range, SeriesName, SignatureGroup } from '../api/types.ts'
import { useKeys } from '../keys/keys.tsx'
import { ActButton } from '../kit/act-button.tsx'
import { ActivityChart } from '../kit/activity-chart.tsx'
import { Count } from '../kit/links.tsx'
import { Empty, Page, Shown, Waiting } from '../kit/page.tsx'
import { useRefusal } from '../kit/role.tsx'
import { Time } from '../time/time.tsx'
import { lettersOf, nameOf } from './group.ts'
import { GroupLetters } from './group-letters.tsx'
import { OutcomePanel } from './outcomes.tsx'
import { SamplesPanel } from './samples.tsx'
import { WhyPanel } from './why.tsx'

const route = getRouteApi('/signatures/$signature')
const LINES: readonly SeriesName[] = ['arrived', 'retried', 'confirmed', 'returned', 'discarded']
const CHART_RANGES: readonly Range[] = ['24h', '7d']
const DEFAULT_RANGE: Range = '24h'
const SHOWN_LETTERS = 20

export function SignatureScreen() {
  const { signature } = route.useParams()
  // Another signature is another view: nothing of the one before is shown while it is read.
  return <SignatureView key={signature} signature={signature} />
}

function SignatureView({ signature }: { readonly signature: string }) {
  const group = useQuery(signatureQuery(signature))
  // Asked for at the same time: nobody waits for one to see the other.
  const letters = useQuery(letterPageQuery({ signature }, null, SHOWN_LETTERS))
  const { range: asked } = route.useSearch()
  const range = CHART_RANGES.find((each) => each === asked) ?? DEFAULT_RANGE
  const navigate = route.useNavigate()
  const activity = useQuery(activityQuery(range, { signature }))

  if (group.data === undefined) {
    return (
      <Page title="Signature">
        <Shown
          read={group}
          what="the signature"
          unknown={
            <Empty title="Signature not found.">
              The address may be incomplete, or its letters belong to another server.
            </Empty>
          }
        >
          {() => null}
        </Shown>
      </Page>
    )
  }
  return (
    <Page
      title={nameOf(group.data)}
      lead={<Standing group={group.data} />}
      beside={<Acts group={group.data} />}
    >
      <Stack gap="md">
        <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="md">
          <WhyPanel group={group.data} />
          <OutcomePanel group={group.data} />
        </SimpleGrid>
        {letters.data === undefined ? (
          <Waiting what="samples" />
        ) : (
          <SamplesPanel letters={letters.data.items} />
        )}
        <ActivityChart
          read={activity}
          names={LINES}
          range={range}
          ranges={CHART_RANGES}
          setRange={(chosen) =>
            void navigate({
              search: chosen === DEFAULT_RANGE ? {} : { range: chosen },
              replace: true,
              resetScroll: false,
            })
          }
        />
        <GroupLetters group={group.data} read={letters} />
      </Stack>
    </Page>
  )
}

function Standing({ group }: { readonly group: SignatureGroup }) {
  const { signature, open, total, firstSeenAtUtc, lastSeenAtUtc, sources, engines } = group
  return (
    <span className="numbers">
      <Count of={open} filter={{ signature, status: 'Pending' }} label="pending of this signature" /> pending
      of <Count of={total} filter={{ signature }} label="letters of this signature" /> · first seen{' '}
      <Time at={firstSeenAtUtc} />, last <Time at={lastSeenAtUtc} />
      {sources.length > 0 && ` · from ${sources.join(', ')}`}
      {engines.length > 0 && ` (${engines.join(', ')})`}
    </span>
  )
}

function Acts({ group }: { readonly group: SignatureGroup }) {
  const plan = usePlan()
  const notAllowed = useRefusal('operator')
  const refusal = group.open === 0 ? 'None of its letters is pending.' : null
  const act = (name: 'retry' | 'discard') => () =>
    plan({
      act: name,
      filter: { signature: group.signature, status: 'Pending' },
      what: lettersOf(group),
    })
  const unlessRefused = (run: () => void) => () => {
    if (refusal === null && notAllowed === null) run()
  }
  useKeys('Signature', [
    { keys: 'r', does: 'retry all pending letters…', run: unlessRefused(act('retry')) },
    { keys: 'd', does: 'discard all pending letters…', run: unlessRefused(act('discard')) },
  ])
  return (
    <Group gap="xs" wrap="nowrap">
      <ActButton size="sm" needs="operator" refusal={refusal} hotkey="r" onClick={act('retry')}>
        Retry all…
      </ActButton>
      <ActButton
        size="sm"
        variant="default"
        needs="operator"
        refusal={refusal}
        hotkey="d"
        onClick={act('discard')}
      >
        Discard all…
      </ActButton>
    </Group>
  )
}
