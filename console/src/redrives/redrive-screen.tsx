/** One redrive: how far it is, what was planned, where its letters went, what kept others, and what became of each. */
import { Anchor, Stack, Text } from '@mantine/core'
import { getRouteApi, Link } from '@tanstack/react-router'
import type { RedriveDetail } from '../api/redrive-types.ts'
import { Empty, Page, Panel, Shown } from '../kit/page.tsx'
import { visible } from '../kit/visible.ts'
import { RedriveBar } from './redrive-bar.tsx'
import { RedriveButtons } from './redrive-buttons.tsx'
import { StateBadge, Who } from './redrive-card.tsx'
import { Destinations, Exceptions } from './redrive-counts.tsx'
import { PlanFacts, Recipe, Terms } from './redrive-facts.tsx'
import { RedriveLetters } from './redrive-letters.tsx'
import { titleOf } from './redrive-words.ts'
import './redrives.css'
import { StartPlanned } from './start-planned.tsx'
import { useRedrive } from './use-redrives.ts'

const route = getRouteApi('/redrives/$id')

export function RedriveScreen() {
  const { id } = route.useParams()
  const read = useRedrive(id)
  if (read.data !== undefined) return <RedriveView key={id} redrive={read.data} />
  return (
    <Page title="Redrive" beside={<AllRedrives />}>
      <Shown
        read={read}
        what="the redrive"
        unknown={
          <Empty title="Redrive not found.">
            Its address may be cut off, it belongs to another server, or its plan was never started and is
            gone.
          </Empty>
        }
      >
        {() => null}
      </Shown>
    </Page>
  )
}

function AllRedrives() {
  return (
    <Anchor size="sm" renderRoot={(props) => <Link to="/redrives" {...props} />}>
      All redrives
    </Anchor>
  )
}

function RedriveView({ redrive }: { readonly redrive: RedriveDetail }) {
  return (
    <Page
      title={titleOf(redrive)}
      lead={
        <>
          <StateBadge state={redrive.state} /> <Who redrive={redrive} />
        </>
      }
      beside={<AllRedrives />}
    >
      <Panel title="Progress" beside={<RedriveButtons redrive={redrive} />}>
        <Text fw={600} className="wrapped">
          {visible(redrive.sentence)}
        </Text>
        {redrive.state === 'planned' ? <StartPlanned redrive={redrive} /> : <RedriveBar redrive={redrive} />}
      </Panel>
      <div className="redrive">
        <Terms redrive={redrive} />
        <Stack gap="md">
          <PlanFacts redrive={redrive} />
          <Exceptions redrive={redrive} />
          {redrive.repair !== null && <Recipe repair={redrive.repair} />}
        </Stack>
      </div>
      <Destinations redrive={redrive} />
      <RedriveLetters redrive={redrive} />
    </Page>
  )
}
