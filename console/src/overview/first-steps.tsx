/** The first minutes with a server of one's own: commands that make the first letters, the first retry and the first redrive. */
import { CloseButton, Group, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { letterCommand } from '../acts/commands.ts'
import { CopiedCommand } from '../acts/copied-command.tsx'
import { letterPageQuery } from '../api/queries.ts'
import { activeRedrivesQuery, pastRedrivesQuery } from '../api/redrive-queries.ts'
import type { Overview } from '../api/types.ts'
import { keep, kept } from '../kit/kept.ts'
import { useSession } from '../kit/role.tsx'

const KEPT_AS = 'bartleby.first-steps'
/** Whoever has as many letters has taken the first steps elsewhere. */
const FEW = 100
const LETTERS = 3

export function FirstSteps({ overview }: { readonly overview: Overview | undefined }) {
  const { demo } = useSession()
  const [isClosed, setClosed] = useState(() => kept('browser', KEPT_AS) === 'closed')
  if (overview === undefined || demo !== null || isClosed) return null
  const { Pending, Resolved, Expired } = overview.letters
  if (Pending + Resolved + Expired > FEW) return null
  const close = () => {
    keep('browser', KEPT_AS, 'closed')
    setClosed(true)
  }
  return <Steps overview={overview} close={close} />
}

function Steps({ overview, close }: { readonly overview: Overview; readonly close: () => void }) {
  const { needsToken } = useSession()
  const { Pending, Resolved, Expired } = overview.letters
  const [letter] = useQuery(letterPageQuery({ status: 'Pending' }, null, 1)).data?.items ?? []
  const hasRun = useQuery(activeRedrivesQuery).data?.items.length ?? 0
  const hasPast = useQuery(pastRedrivesQuery(null)).data?.items.length ?? 0
  return (
    <section aria-label="First steps" className="first-steps">
      <Group justify="space-between">
        <Title order={2} size="h5">
          First steps
        </Title>
        <CloseButton aria-label="Close the first steps" onClick={close} />
      </Group>
      <ol>
        <Step
          isDone={Pending + Resolved + Expired > 0}
          title="Make letters: a queue, and three failures to report"
        >
          <CopiedCommand text={firstLetters(window.location.origin, needsToken)} label="the first step" />
        </Step>
        <Step isDone={Resolved > 0} title="Retry one: open it and press Retry, or">
          <CopiedCommand
            text={letterCommand('retry', letter ?? { engine: 'hello', rowKey: 'ROWKEY' })}
            label="the second step"
          />
        </Step>
        <Step isDone={hasRun + hasPast > 0} title="Redrive the rest: plan a retry of the cause above, or">
          <CopiedCommand
            text="bartleby redrive plan 'queue:hello' --start --watch --yes"
            label="the third step"
          />
        </Step>
      </ol>
    </section>
  )
}

function Step({
  title,
  isDone,
  children,
}: {
  readonly title: string
  readonly isDone: boolean
  readonly children: ReactNode
}) {
  return (
    <li data-done={isDone || undefined}>
      <Text size="sm">
        {title}
        {isDone && <strong> ✓ done</strong>}
      </Text>
      {!isDone && children}
    </li>
  )
}

/** A queue to send back to, and reports of failures in it. */
function firstLetters(origin: string, needsToken: boolean): string {
  const token = needsToken ? ' -H "authorization: Bearer $BARTLEBY_TOKEN"' : ''
  const report = {
    engine: 'hello',
    sourceId: "hello-'$n'",
    originalQueue: 'hello',
    originalMessage: '{"total":null}',
    errorClass: 'TypeError',
    errorMessage: 'order has no total',
  }
  return [
    `bartleby queues create hello --url ${origin}`,
    `for n in ${Array.from({ length: LETTERS }, (_, place) => place + 1).join(' ')}; do curl -s ${origin}/api/dlq${token} -H 'content-type: application/json' -d '${JSON.stringify(report)}'; done`,
  ].join('\n')
}
