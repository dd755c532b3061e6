/** Verify: every promise of the store, checked on request, with the rows that break one. */
import { Alert, Badge, Code, Progress, Stack, Table, Text } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { call, reasonOf } from '../api/call.ts'
import { verifyQuery } from '../api/queries.ts'
import type { Verification } from '../api/types.ts'
import { ActButton } from '../kit/act-button.tsx'
import { Panel, Shown } from '../kit/page.tsx'
import { grouped } from '../time/format.ts'
import { Time } from '../time/time.tsx'
import { useToasts } from '../toasts/toasts.tsx'

type Check = Verification['checks'][number]

export function VerifyPanel() {
  const client = useQueryClient()
  const toasts = useToasts()
  const read = useQuery(verifyQuery)
  const start = useMutation({
    mutationFn: () => call<Verification>('POST', '/api/verify'),
    onSuccess: (standing) => client.setQueryData(verifyQuery.queryKey, standing),
    onError: (error) =>
      toasts.show({ title: 'Verify was not started', message: reasonOf(error), tone: 'failed' }),
  })
  const isRunning = read.data?.state === 'running'
  useAnnouncedEnd(read.data)
  return (
    <Panel
      title="Verify"
      beside={
        <ActButton
          needs="admin"
          size="xs"
          variant="default"
          refusal={isRunning ? 'It is running.' : null}
          onClick={() => start.mutate()}
        >
          Run verify
        </ActButton>
      }
    >
      <Shown read={read} what="the result of verify">
        {(standing) => <Standing of={standing} />}
      </Shown>
    </Panel>
  )
}

/** Says to screen readers how a run ended that was seen running. */
function useAnnouncedEnd(standing: Verification | undefined): void {
  const { announce } = useToasts()
  const state = standing?.state
  const before = useRef(state)
  const broken = standing?.checks.filter(({ holds }) => !holds).length ?? 0
  useEffect(() => {
    if (before.current === 'running' && state === 'done')
      announce(broken === 0 ? KEPT : `${broken} promises are broken.`)
    if (before.current === 'running' && state === 'failed') announce('Verify could not be finished.')
    before.current = state
  }, [announce, state, broken])
}

const KEPT = 'All promises are kept.'

function Standing({ of }: { readonly of: Verification }) {
  const { state, progress, error, checks, startedAtUtc, finishedAtUtc } = of
  if (state === 'never')
    return (
      <Text size="sm">
        It has not run on this server yet. It proves on the live store that no letter is lost, none is counted
        wrong, and each is in one state. It reads only, and nobody waits for it. On the command line:{' '}
        <Code>bartleby verify</Code>
      </Text>
    )
  if (state === 'running') return <Running progress={progress} startedAtUtc={startedAtUtc} />
  if (state === 'failed')
    return (
      <Alert role="note" color="red" title="The store could not be checked">
        {error} Nothing is known about its promises; run it again.
      </Alert>
    )
  const broken = checks.filter(({ holds }) => !holds)
  return (
    <Stack gap="sm">
      <Alert
        role="note"
        color={broken.length === 0 ? 'teal' : 'red'}
        title={broken.length === 0 ? KEPT : `${broken.length} of ${checks.length} promises are broken`}
      >
        Checked <Time at={finishedAtUtc} />.{' '}
        {broken.length > 0 && (
          <>
            The rows are named below, and all of them by <Code>bartleby verify</Code>. Please report it: it is
            a fault of Bartleby.
          </>
        )}
      </Alert>
      <Checks of={checks} />
    </Stack>
  )
}

function Running({ progress, startedAtUtc }: Pick<Verification, 'progress' | 'startedAtUtc'>) {
  const { label = 'starting', done = 0, expected = 0 } = progress ?? {}
  const share = expected === 0 ? 0 : Math.min(100, (done / expected) * 100)
  return (
    <Stack gap="xs">
      <Text size="sm">
        Running since <Time at={startedAtUtc} />: {label}
        {expected > 0 && `, ${grouped(done)} of ${grouped(Math.max(done, expected))} rows`}. It goes on when
        you leave this page.
      </Text>
      <Progress.Root>
        <Progress.Section value={share} animated aria-label="Rows checked" />
      </Progress.Root>
    </Stack>
  )
}

function Checks({ of }: { readonly of: readonly Check[] }) {
  return (
    <Table aria-label="Promises">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col" w="4rem">
            Id
          </Table.Th>
          <Table.Th scope="col">Promise</Table.Th>
          <Table.Th scope="col" w="10rem">
            Result
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {of.map((check) => (
          <Table.Tr key={check.id}>
            <Table.Td>{check.id}</Table.Td>
            <Table.Td>
              {check.title}
              {check.samples.map((sample) => (
                <pre key={sample} className="bytes">
                  {sample}
                </pre>
              ))}
            </Table.Td>
            <Table.Td>
              <Badge variant="light" size="sm" className="badge" color={check.holds ? 'teal' : 'red'}>
                {check.holds ? 'kept' : `broken by ${grouped(check.findings)}`}
              </Badge>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  )
}
