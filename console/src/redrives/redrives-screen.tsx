/** Redrives: what this tab does and did with many letters, and what the server does with dead webhooks. */
import { Stack, Text } from '@mantine/core'
import { isActive } from '../acts/run.ts'
import { useRuns } from '../acts/runs-context.ts'
import { LettersLink } from '../kit/links.tsx'
import { Empty, Page } from '../kit/page.tsx'
import { useSession } from '../kit/role.tsx'
import { RunCard } from './run-card.tsx'
import { WebhookRuns } from './webhook-runs.tsx'

export function RedrivesScreen() {
  const { runs } = useRuns()
  const { sources } = useSession()
  const running = runs.filter(isActive)
  const past = runs.filter((run) => !isActive(run))
  return (
    <Page
      title="Redrives"
      lead="Runs of this tab. They go on while you look at other screens, and end when the tab is closed: what was done stays done, the rest can be planned again."
    >
      {runs.length === 0 && (
        <Empty title="This tab has run nothing yet.">
          <span className="prose">
            Choose several <LettersLink filter={{ status: 'Pending' }}>pending letters</LettersLink>, or a
            signature, and press Retry.
          </span>
        </Empty>
      )}
      {running.length > 0 && (
        <Stack component="section" aria-label="Running" gap="sm">
          {running.map((run) => (
            <RunCard key={run.id} run={run} />
          ))}
        </Stack>
      )}
      {past.length > 0 && (
        <Stack component="section" aria-label="Past" gap="sm">
          <Text fw={600}>Past</Text>
          {past.map((run) => (
            <RunCard key={run.id} run={run} />
          ))}
        </Stack>
      )}
      {sources.webhooks && <WebhookRuns />}
    </Page>
  )
}
