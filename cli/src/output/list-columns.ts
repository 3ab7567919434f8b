const columns = (names: string) => names.split(' ')

/**
 * The columns of each list, the most important first: as many are shown as the terminal has room for. A member of an
 * object inside an item is written with a dot. A list that is not named here shows all its plain members.
 */
export const listColumns: Readonly<Record<string, readonly string[]>> = {
  listPolicies: columns('id name state current_version updated_at revision description'),
  listPolicyVersions: columns('version current mode published_at rule direction scope'),
  readPolicyDecisions: columns('start version direction decision mode count project_id'),
  listGatewayHistory: columns('id created_at kind revision decision reason_code actor'),
  listGatewayQuotas: columns(
    'subject credits requests tokens window scope hard_stop window_end id',
  ),
  listExports: columns(
    'id type state lag_seconds dead_letters label pending_events enabled last_success_at last_error_at last_error',
  ),
  listGuardrails: columns('id name mode enabled on_error deadline_ms url updated_at created_at'),
  listExportDeadLetters: columns('event_id org_seq error attempts created_at id'),
  listAuditEvents: columns(
    'id created_at event_type action decision outcome model actor actor_type policy_id policy_name project_id request_id',
  ),
  listAuditRecords: columns(
    'id record.created_at record.event_type record.action record.decision record.actor leaf',
  ),
  listAuditCheckpoints: columns('id created_at org_seq key_id root previous_hash'),
  listProjects: columns('id name status created_at archived_at monthly_budget.credits'),
  listProjectApiKeys: columns('id name redacted_value last_used_at created_at expires_at'),
  listAdminApiKeys: columns('id name redacted_value last_used_at created_at expires_at'),
  listMembers: columns('id email role status name last_seen_at created_at role_source'),
  listMemberSessions: columns('id form method last_seen_at created_at expires_at is_current'),
  listProjectMembers: columns('id email role name created_at'),
  listPolicyApprovals: columns('id revision member_id counts created_at'),
  listGatewayProposals: columns('id status proposed_by created_at decided_by comment'),
  listRoles: columns('id description permissions'),
  listOrganizationModels: columns(
    'id display_name context_tokens pricing.input pricing.output max_output_tokens owned_by',
  ),
  listModels: columns(
    'id display_name context_tokens pricing.input pricing.output max_output_tokens owned_by',
  ),
  listLedgerEntries: columns(
    'id kind amount created_at model input_tokens output_tokens project_id key_id debit credit',
  ),
  readTraffic: columns(
    'start group calls input_tokens output_tokens credits latency.p50_ms latency.p95_ms first_token.p50_ms',
  ),
  readProcesses: columns(
    'id release is_ready is_failed is_counting_locally last_seen_at started_at policy_epoch',
  ),
  readUsage: columns(
    'day model requests input_tokens output_tokens cost_usd project_id key_id credits',
  ),
}
